"""Run with `conductor feature test`."""

import unittest

from harness import Failure, Feature

GRANTS = """{{others}}
"""


class Tool(unittest.TestCase):
    def test_middle_c_is_c4(self):
        with Feature(GRANTS) as feature:
            self.assertEqual(feature.call("{{snake}}", note=60), {"name": "C4", "frequency": 261.63})
            self.assertEqual(feature.call("{{snake}}", note=69)["frequency"], 440.0)

    def test_a_note_beyond_midi_is_refused_in_words(self):
        with Feature(GRANTS) as feature, self.assertRaisesRegex(Failure, "0 to 127"):
            feature.call("{{snake}}", note=200)
