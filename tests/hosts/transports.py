"""The bits of threads from processes over every transport that the MPIs of the tests have."""
import os
import unittest

from runs import MPIEXEC, MPIEXEC_INTEL, MPIEXEC_MPICH, MPIEXEC_ULFM, Runs

OPEN_MPI = ["--oversubscribe", "--bind-to", "none", "--mca", "pml"]
UCX = ["ucx", "--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any",
       "-x", "UCX_TLS=tcp,self,sm"]
# Processes of one host as if each were on a host of its own.
FAR = {"MPIR_CVAR_NOLOCAL": "1"}
INTEL = {"I_MPI_PIN": "0", "FI_PROVIDER": "tcp"}
# Name: launcher, its options, environment, what the log says of it.
TRANSPORTS = {
    "Open MPI over TCP": (MPIEXEC, [*OPEN_MPI, "ob1", "--mca", "btl", "tcp,self"], {},
                          "over TCP and shared memory (ob1)"),
    "Open MPI over UCX": (MPIEXEC, [*OPEN_MPI, *UCX], {}, "over UCX, tags up to 8388607"),
    "Open MPI 5": (MPIEXEC_ULFM, [*OPEN_MPI, "ob1"], {}, "over TCP and shared memory (ob1)"),
    "MPICH over libfabric": (MPIEXEC_MPICH, [], {"MPIR_CVAR_CH4_NETMOD": "ofi", **FAR},
                             "over libfabric"),
    "MPICH over UCX": (MPIEXEC_MPICH, [], {"MPIR_CVAR_CH4_NETMOD": "ucx", **FAR}, "over UCX"),
    "MPICH in shared memory": (MPIEXEC_MPICH, [], {}, "MPICH Version: "),
    "Intel MPI over libfabric": (MPIEXEC_INTEL, [], {"I_MPI_FABRICS": "ofi", **INTEL},
                                 "over libfabric (tcp), tags up to 524287"),
    "Intel MPI in shared memory": (MPIEXEC_INTEL, [], {"I_MPI_FABRICS": "shm", **INTEL},
                                   "over shared memory"),
}
METHODS = {
    "ddp": ["method.name=ddp"],
    "both": ["method.trains=both", "method.full_rank_steps=0"],
    "roles": ["method.group_size={half}"],
    "diloco": ["method.name=diloco", "method.fragments=2", "method.delay=3"],
}
LENGTH = ["train.steps=400", "evaluate.every=0", "checkpoint.every=0"]


class Transports(Runs):
    def compare(self, methods, workers):
        wanted = {}
        for method in methods:
            sets = [*METHODS[method], f"workers={workers}", *LENGTH]
            name = f"{method}{workers}"
            wanted[name] = [entry.format(half=workers // 2) for entry in sets]
            self.run_it(name, *wanted[name])
        for transport, (mpiexec, options, environment, words) in TRANSPORTS.items():
            self.needs(mpiexec, transport)
            for name, sets in wanted.items():
                with self.subTest(transport, run=name):
                    run = f"{name} {transport}"
                    outcome = self.run_it(run, *sets, processes=workers, env=environment,
                                          launcher=[mpiexec, *options])
                    self.assertIn(words, outcome.err)
                    self.assertEqual(self.model(name), self.model(run))

    def test_every_transport_gives_the_bits_of_threads(self):
        self.compare(["roles"], 4)

    def test_a_process_may_take_its_time_to_exit(self):
        """Without MPICH's exit handlers, its launcher takes that for a crash."""
        slow = {"LD_PRELOAD": os.environ["KILL_AT_LIBRARY"], "SLOW_EXIT": "1"}
        self.run_it("slow", "method.name=ddp", processes=2, mpich=True, env=slow)

    def test_slow_every_method_over_every_transport(self):
        for workers in (2, 4):
            self.compare(METHODS, workers)


if __name__ == "__main__":
    unittest.main()
