"""How processes without MPI meet: each rank once, with one secret or none.

ABTRAIN names the program.
"""
import signal
import socket
import time
import unittest

from runs import Runs, free_port, listens


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as taken:
            taken.bind(("::1", 0))
        return True
    except OSError:
        return False


class Meeting(Runs):
    def meet(self, rank, processes, port, host="127.0.0.1", **env):
        """A process that meets the others at a port of this host."""
        return self.start("met", env={
            "RANK": str(rank), "WORLD_SIZE": str(processes),
            "MASTER_ADDR": host, "MASTER_PORT": str(port), **env})

    def test_each_rank_comes_once(self):
        port = free_port()
        first = self.meet(0, 3, port)
        second = self.meet(1, 3, port)
        while not listens(port):
            self.assertIsNone(first.poll())
            time.sleep(0.05)
        # Whichever of the two of a rank comes later is told at once.
        third = self.meet(1, 3, port)
        while second.poll() is None and third.poll() is None:
            time.sleep(0.05)
        late, early = (second, third) if third.poll() is None else (third, second)
        outcome = self.finish(late)
        self.assertEqual(outcome.code, 78, outcome)
        self.assertIn(f"process {early.pid} on ", outcome.err)
        self.assertIn("has rank 1 already", outcome.err)
        outcome = self.finish(self.meet(0, 3, port))
        self.assertEqual(outcome.code, 78, outcome)
        self.assertIn(f"cannot serve on 127.0.0.1:{port}", outcome.err)
        # A process of another size: both say so.
        outcome = self.finish(self.meet(2, 4, port))
        self.assertEqual(outcome.code, 78, outcome)
        self.assertIn("was started as one of 4 processes", outcome.err)
        outcome = self.finish(first)
        self.assertEqual(outcome.code, 78, outcome)
        self.assertIn("was started as one of 4 processes", outcome.err)
        self.assertEqual(self.finish(early).code, 69)

    def test_processes_without_mpi_all_say_why_they_end(self):
        hosts = ["127.0.0.1", *(["::1"] if has_ipv6() else [])]
        for host in hosts:
            port = free_port()
            for outcome in map(self.finish, [self.meet(rank, 2, port, host) for rank in (0, 1)]):
                self.assertEqual(outcome.code, 78, outcome)
                self.assertEqual(
                    outcome.err.count("but without MPI, which is needed by workers on CPUs"), 1,
                    outcome)
                self.assertIn("mpirun -np 2", outcome.err)

    def test_a_name_that_a_host_does_not_know_is_said_at_once(self):
        for rank in (0, 1):
            outcome = self.finish(self.meet(rank, 2, free_port(), "no-such-host.invalid"))
            self.assertEqual(outcome.code, 69, outcome)
            self.assertIn("does not know the name 'no-such-host.invalid'", outcome.err)

    def test_who_waits_says_so_and_can_be_stopped(self):
        waits = [self.meet(1, 2, free_port()) for _ in range(2)]
        for line in waits[0].stderr:
            if "waiting for the others" in line:
                break
        self.assertIn("each rank from 0 to 1 must be started once", line)
        for process in waits:
            process.send_signal(signal.SIGTERM)
            self.assertEqual(self.finish(process).code, 75)

    def test_a_secret_that_not_all_have_ends_the_meeting(self):
        secrets = ({}, {"ABTRAIN_SECRET": "sixteen bytes or more"},
                   {"ABTRAIN_SECRET": "sixteen other bytes"})
        for here, there, why in [(0, 1, "has none"), (1, 0, "has none"),
                                 (1, 2, "do not have the same secret")]:
            port = free_port()
            pair = [self.meet(0, 2, port, **secrets[here]),
                    self.meet(1, 2, port, **secrets[there])]
            for outcome in map(self.finish, pair):
                self.assertEqual(outcome.code, 78, outcome)
                self.assertIn(why, outcome.err)

    def test_a_secret_changes_no_bit(self):
        secret = self.folder / "secret"
        secret.write_text("sixteen bytes or more\n")
        secret.chmod(0o600)
        env = {"ABTRAIN_SECRET_FILE": str(secret)}
        self.run_it("open", processes=2)
        self.run_it("sealed", processes=2, env=env)
        self.assertEqual(self.model("open"), self.model("sealed"))
        secret.chmod(0o644)
        outcome = self.run_it("sealed", processes=2, env=env, code=78)
        self.assertIn("is open to users other", outcome.err)


if __name__ == "__main__":
    unittest.main()
