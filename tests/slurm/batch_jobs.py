"""What tests of jobs on a local Slurm share."""

import os
import pathlib
import re
import sys
import unittest

from local_slurm import LocalSlurm, enter_own_processes, missing

ROOT = pathlib.Path(__file__).resolve().parents[2]


class BatchJobs(unittest.TestCase):
    """A Slurm and a folder to work in, for all tests of a class."""
    program = ""  # the absolute path of abtrain
    nodes = 1

    @classmethod
    def setUpClass(cls):
        cls.slurm = LocalSlurm(cls.nodes)
        cls.enterClassContext(cls.slurm)
        cls.folder = cls.slurm.folder / "work"
        cls.folder.mkdir()
        cls.slurm.env["ABTRAIN"] = cls.program

    @classmethod
    def tearDownClass(cls):
        for log in sorted(cls.folder.glob("*.out")):
            print(f"---- {log.name}", log.read_text(), sep="\n", file=sys.stderr)

    @classmethod
    def submit(cls, *arguments):
        return cls.slurm.run("sbatch", "--parsable", *arguments,
                             cwd=cls.folder).stdout.strip()

    @classmethod
    def sweep(cls, *arguments, check=True):
        return cls.slurm.run(cls.program, "sweep", *arguments, cwd=cls.folder,
                             check=check, timeout=600)

    @classmethod
    def points(cls, *arguments):
        """Rows of index, point, folder, state."""
        text = cls.sweep(*arguments, "--list").stdout
        return [line.split("\t") for line in text.splitlines()]

    @classmethod
    def wait_state(cls, job, state, seconds=180):
        """Waits for a job's end, and for the state that is wanted."""
        def ended():
            found = cls.slurm.job(job).get("JobState", "")
            return found not in ("PENDING", "CONFIGURING", "RUNNING",
                                 "COMPLETING", "REQUEUED") and found
        found = cls.slurm.wait_for(ended, seconds, f"the end of job {job}")
        if found != state:
            raise AssertionError(f"job {job} is {found}, not {state}")

    def log(self, job):
        """What a job printed."""
        return "".join(p.read_text()
                       for p in self.folder.glob(f"*-{job}.out"))

    def check_refused(self, says, code, *arguments):
        """A job that must end at once, with its code and words."""
        job = self.submit("--output=refused-%j.out", *arguments)
        self.wait_state(job, "FAILED", 60)
        # A single array task carries the number of its array.
        self.assertEqual(
            self.slurm.job(job)["ExitCode"], f"{code}:0", arguments)
        self.assertIn(says, self.log(job))
        self.assertFalse(re.search(r"restart \d", self.log(job)))


def main(nodes=1):
    """Several nodes where tests of the calling file have them."""
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit(f"wanted: {sys.argv[0]} PROGRAM")
    if missing():
        print("skipped: " + missing())
        sys.exit(77)
    enter_own_processes(nodes)
    BatchJobs.program = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
