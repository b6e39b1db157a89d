"""The batch file, unedited, on a real Slurm of two nodes with a network between them:
    python3 tests/slurm/test_nodes.py PROGRAM [unittest's arguments]
Ends with 77 where no Slurm can be started.
"""

import json

from batch_jobs import ROOT, BatchJobs, main

CONFIG = """
name: small
device: cpu
data: {name: fashion-mnist, batch_size: 16, subset: 2000}
model: {name: mlp, hidden: [64, 64]}
workers: 4
method:
  name: ab
  group_size: 2
  warmup_steps: 20
  sync_every: 20
  full_rank_steps: 2
  rank: {rule: ratio, ratio: 4}
train: {steps: 1500, threads: 1}
checkpoint: {every: 50 steps}
"""


class TwoNodes(BatchJobs):
    nodes = 2

    def test_same_bits_as_threads(self):
        (self.folder / "small.yaml").write_text(CONFIG)
        self.slurm.run(self.program, "--config", "small.yaml", "--name", "threads",
                       cwd=self.folder)
        job = self.submit("--nodes=2", "--ntasks-per-node=2", "--cpus-per-task=1",
                          ROOT / "slurm/train.sbatch", "small.yaml", "--name", "nodes")
        # All nodes save, and continue when the job is started again.
        run = self.folder / "runs/nodes"
        self.slurm.wait_for(lambda: any(run.glob("checkpoints/step-*")), 60, "a checkpoint")
        self.slurm.run("scancel", "--signal=USR1", job)
        self.wait_state(job, "COMPLETED")
        log = self.log(job)
        self.assertEqual(log.count("Slurm step: process 0 of 4, 0 of 2 on this host"), 2, log)
        self.assertIn("back into the queue", log)
        self.assertEqual((run / "model.safetensors").read_bytes(),
                         (self.folder / "runs/threads/model.safetensors").read_bytes())


    def take_back(self, node):
        # It may have come back by itself.
        self.slurm.run("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)
        self.slurm.wait_for(lambda: self.slurm.run(
            "sinfo", "-h", "-p", "main", "-o", "%D %T").stdout.strip() == "2 idle", 60, node)

    def test_a_lost_node_is_left_out(self):
        (self.folder / "small.yaml").write_text(CONFIG)
        job = self.submit("--nodes=2", "--ntasks-per-node=2", "--cpus-per-task=1",
                          ROOT / "slurm/train.sbatch", "small.yaml", "--name", "lost")
        run = self.folder / "runs/lost"
        self.slurm.wait_for(lambda: any(run.glob("checkpoints/step-*")), 60, "a checkpoint")
        self.slurm.run("scontrol", "update", "NodeName=node2", "State=DOWN", "Reason=test")
        self.addCleanup(self.take_back, "node2")
        self.wait_state(job, "COMPLETED")
        self.assertEqual(self.slurm.job(job)["Restarts"], "0")
        log = self.log(job)
        self.assertIn("node2 does not answer: it is no longer a node of the job", log)
        self.assertIn("1 of 2 hosts answer: 2 of 4 workers", log)
        self.assertIn("Slurm step: process 0 of 2, 0 of 2 on this host", log)
        self.assertIn("by 4 workers", log)
        self.assertEqual(json.loads((run / "summary.json").read_text())["workers"], 2)


if __name__ == "__main__":
    main(TwoNodes.nodes)
