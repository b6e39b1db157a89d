"""Runs whose processes do not find each other."""
import unittest

from runs import Runs, free_port


class Starts(Runs):
    def test_a_name_that_nobody_knows_is_said_at_once(self):
        where = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "no-such-host.invalid",
                 "MASTER_PORT": str(free_port())}
        outcome = self.run_it("unknown", env=where, code=78)
        self.assertIn("does not know the name 'no-such-host.invalid'", outcome.err)


if __name__ == "__main__":
    unittest.main()
