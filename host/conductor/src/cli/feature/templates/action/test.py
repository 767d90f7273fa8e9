"""Run with `conductor feature test`."""

import unittest

from harness import Failure, Feature

GRANTS = """
udp = ["127.0.0.1:9000"]{{others}}
"""


class Action(unittest.TestCase):
    def test_a_pad_sends_text(self):
        config = """
            [[global_mappings]]
            trigger = { type = "Note", note = 36 }
            action = { type = "{{Type}}", target = "127.0.0.1:9000", text = "pad" }
        """
        with Feature(GRANTS, config) as feature:
            feature.play("0ms pads note-on 36 100\n+10ms pads note-on 37 100")
            self.assertEqual(feature.seen()["sent"], [{"to": "127.0.0.1:9000", "bytes": list(b"pad 100\n")}])

    def test_a_target_without_a_grant_is_refused_when_the_mapping_is_read(self):
        with Feature(GRANTS) as feature, self.assertRaisesRegex(Failure, "not granted"):
            feature.prepare("{{Type}}", target="192.0.2.1:9000")
