"""Run with `conductor feature test`."""

import unittest

from harness import Feature

GRANTS = """
background_task = true
alert = true{{others}}
"""


class Task(unittest.TestCase):
    def test_a_break_is_due_after_25_minutes(self):
        """The clock moves by hand: the test does not wait for 25 minutes."""
        with Feature(GRANTS) as feature:
            running = {"name": "reminder", "state": "running"}
            feature.until("the task runs", lambda seen: any(running.items() <= task.items() for task in seen["tasks"]))

            def is_due(seen):
                feature.advance(25 * 60 * 1000)
                return any(said["sink"] == "alert" and said["text"] == "Time for a break." for said in seen["said"])

            feature.until("the reminder comes", is_due)
