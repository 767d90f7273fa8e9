"""Run with `conductor feature test`."""

import unittest

from harness import Feature


class Hook(unittest.TestCase):
    def test_only_loud_notes_are_reported(self):
        grants = """
observe_events = ["*"]{{others}}
"""
        with Feature(grants) as feature:
            feature.play("0ms pads note-on 36 127\n+10ms pads note-on 37 40\n+10ms pads note-off 36")
            said = [message["text"] for message in feature.seen()["said"]]
            self.assertEqual(said, ["pads plays note 36 at 127"])

    def test_other_devices_stay_unheard_without_a_grant(self):
        grants = """
observe_events = ["pads"]{{others}}
"""
        with Feature(grants) as feature:
            feature.play("0ms faders note-on 36 127\n+10ms pads note-on 37 127")
            self.assertEqual(len(feature.seen()["said"]), 1)
