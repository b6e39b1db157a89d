"""The batch file, unedited, on a real Slurm of two nodes with a network between them:
    python3 tests/slurm/test_nodes.py PROGRAM [unittest's arguments]
Ends with 77 where no Slurm can be started.
"""

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


if __name__ == "__main__":
    main(TwoNodes.nodes)
