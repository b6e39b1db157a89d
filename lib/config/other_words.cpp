#include "config/other_words.h"

#include <algorithm>

#include "base/text.h"

namespace abtrain::config {

namespace {

constexpr OtherWord kWords[] = {
    // The run.
    {"random_seed manual_seed seed_everything random_state", "seed", ""},
    {"gpus num_gpus n_gpu devices nproc nproc_per_node num_processes world_size", "workers", ""},
    {"accelerator", "device", ""},
    {"backend dist_backend process_group_backend", "comm", "local, mpi or nccl"},
    {"strategy distributed distribution_strategy", "method.name", "ab, ddp, local-sgd or diloco"},
    {"fsdp deepspeed zero tensor_parallel pipeline_parallel model_parallel", "",
     "each worker holds the whole model"},
    {"num_nodes nnodes nodes n_nodes", "",
     "a launcher (mpirun, srun or torchrun) starts processes on the nodes, and each of them is a "
     "worker"},
    {"output_dir save_dir out_dir log_dir logging_dir default_root_dir work_dir", "output", ""},
    {"run_name exp_name experiment experiment_name", "name", ""},
    {"resume resume_from resume_from_checkpoint ckpt_path", "",
     "--resume on the command line continues a run"},
    {"wandb mlflow comet neptune report_to logger loggers project entity", "",
     "metrics.jsonl and TensorBoard's file in the run folder have all numbers"},
    // The data.
    {"num_workers n_workers dataloader_num_workers loader_workers", "data.decode_threads",
     "threads that decode images; 'workers' are those that train"},
    {"dataset data_set dataset_name", "data.name", ""},
    {"path dir data_dir data_path data_root dataset_path dataset_dir train_dir", "data.root", ""},
    {"batch bs train_batch_size per_device_train_batch_size per_gpu_batch_size batchsize",
     "data.batch_size", "examples per worker and step"},
    {"global_batch_size total_batch_size", "data.batch_size",
     "examples per worker and step; a step takes workers x batch_size x accumulate"},
    {"eval_batch_size val_batch_size test_batch_size per_device_eval_batch_size",
     "evaluate.batch_size", ""},
    {"shuffle sampler", "order.name", "shuffle is the default; sequential does not"},
    {"prefetch prefetch_factor pin_memory persistent_workers drop_last", "",
     "batches are prepared ahead by threads, and each has the full size"},
    {"img_size input_size imgsz resolution crop_size", "data.image_size", ""},
    {"val_split validation_split val_size valid_size val_fraction", "data.validation",
     "a number of training examples"},
    {"test_split test_size", "data.test_share", ""},
    {"block_size seq_len seq_length sequence_length max_length max_seq_length max_seq_len "
     "context_length",
     "data.context", ""},
    {"vocab_size n_vocab", "data.vocabulary", ""},
    {"hflip horizontal_flip random_crop augmentation transform transforms", "data.augment", ""},
    {"random_erasing random_erase reprob", "data.erase", ""},
    {"mixup cutmix mixup_alpha cutmix_alpha randaugment rand_augment auto_augment autoaugment aa "
     "trivial_augment color_jitter cutout",
     "", "data.augment (flip, crop) and data.erase change images"},
    {"normalize", "data.mean", "with data.std; a data set has its own by default"},
    {"num_classes n_classes nb_classes in_channels in_chans input_channels", "",
     "the data set decides"},
    // The model.
    {"arch architecture backbone model_name net network", "model.name", ""},
    {"pretrained finetune init_from pretrained_path load_weights checkpoint_path", "model.weights",
     "a safetensors file to start from"},
    {"freeze freeze_layers frozen_layers requires_grad trainable", "model.frozen",
     "names or globs of what is not trained; ! exempts"},
    {"lora_alpha", "method.alpha", "with method.remainder freeze and start zero"},
    {"target_modules lora_target_modules", "method.only", ""},
    {"init_lora_weights", "method.start", "zero is LoRA, svd is PiSSA"},
    {"lora peft use_lora use_peft", "method.remainder", "freeze trains adapters"},
    {"lora_dropout use_rslora use_dora", "", "adapters are trained as LoRA or PiSSA"},
    {"dropout drop p_drop dropout_rate dropout_p", "model.drop_rate", ""},
    {"drop_path_rate stochastic_depth stochastic_depth_prob", "model.drop_path", ""},
    {"hidden_sizes hidden_dims hidden_dim hidden_units", "model.hidden", ""},
    {"n_layer n_layers num_layers num_hidden_layers depth", "model.layers", ""},
    {"n_head n_heads num_heads num_attention_heads", "model.heads", ""},
    {"n_embd d_model hidden_size embed_dim", "model.features", ""},
    {"compile torch_compile", "", "the program is compiled already"},
    {"ema model_ema ema_decay swa", "", "no average of earlier weights is kept"},
    {"sync_bn sync_batchnorm", "",
     "evaluate.norm_batches computes the statistics of batch norms anew before an evaluation"},
    // The optimizer and its learning rate.
    {"learning_rate init_lr base_lr max_lr peak_lr", "optimizer.lr", ""},
    {"min_lr lr_min eta_min end_lr", "schedule.final_lr", ""},
    {"wd l2", "optimizer.weight_decay", ""},
    {"betas", "optimizer.beta1", "with optimizer.beta2"},
    {"opt optim", "optimizer.name", ""},
    {"scheduler lr_scheduler sched lr_schedule lr_scheduler_type decay_lr", "schedule.name", ""},
    {"warmup warmup_steps warmup_epochs warmup_iters num_warmup_steps warmup_ratio lr_warmup",
     "schedule.warmup_steps", "as in 100, 2 epochs or 5 %"},
    {"warmup_lr warmup_start_lr", "schedule.warmup_from", ""},
    {"gamma lr_decay lr_gamma decay_rate", "schedule.step_factor", ""},
    {"step_size lr_step_size lr_steps decay_epochs", "schedule.milestones", "shares of the run"},
    // The loop.
    {"max_epochs num_epochs n_epochs num_train_epochs", "train.epochs", ""},
    {"max_steps num_steps iterations iters max_iters total_steps num_iterations train_steps",
     "train.steps", ""},
    {"amp use_amp fp16 bf16 mixed_precision autocast dtype", "train.precision",
     "auto, fp32 or bf16"},
    {"grad_scaler loss_scale", "", "bf16 needs no scaling of the loss"},
    {"gradient_accumulation_steps gradient_accumulation grad_accum grad_accum_steps "
     "accumulation_steps accumulate_grad_batches",
     "train.accumulate", ""},
    {"gradient_clip_val gradient_clip clip_grad clip_grad_norm grad_clip max_grad_norm "
     "gradient_clip_norm",
     "train.clip_norm", ""},
    {"gradient_clip_algorithm clip_grad_value clip_mode", "",
     "train.clip_norm limits the norm of the gradient"},
    {"smoothing", "train.label_smoothing", ""},
    {"loss criterion loss_fn loss_function", "",
     "the data decide: classes and tokens give the cross-entropy, numbers the mean squared error"},
    {"class_weights class_weight", "", "all examples count alike"},
    {"deterministic use_deterministic_algorithms", "",
     "a run on CPUs repeats to the bit, with the same seed and workers"},
    {"cudnn_benchmark benchmark find_unused_parameters gradient_checkpointing", "",
     "there is nothing to choose"},
    {"early_stopping early_stop patience monitor", "",
     "data.validation holds examples out, and RUN@best names the best of the checkpoints"},
    {"metric metrics", "", "accuracy, or R² of numbers, and the loss are always computed"},
    {"log_interval log_every_n_steps logging_steps log_freq print_freq", "train.log_every", ""},
    {"eval_interval eval_steps eval_freq eval_every val_interval val_check_interval "
     "check_val_every_n_epoch",
     "evaluate.every", "as in 100, 2 epochs or 5 %"},
    {"save_interval save_steps save_every save_freq checkpoint_interval checkpoint_every "
     "every_n_epochs every_n_train_steps",
     "checkpoint.every", "as in 100, 2 epochs or 5 %"},
    {"save_top_k save_total_limit keep_last", "checkpoint.keep", ""},
    // Communication.
    {"bucket_cap_mb", "reducer.bucket_mb", ""},
    {"compression gradient_compression comm_hook ddp_comm_hook", "reducer.name", ""},
    {"matrix_approximation_rank powersgd_rank", "reducer.rank", "with reducer.name=powersgd"},
    {"local_steps sync_interval inner_steps h", "method.sync_every", ""},
    {"lora_rank lora_r", "method.rank.rank",
     "with method.rank.rule=fixed, and method.remainder=freeze for adapters"}};

// Removed keys. The configurations of old runs still contain them, so a key with its last default
// (`harmless`; *: any value) is ignored.
struct RemovedKey {
  std::string_view words;
  std::string_view key;
  std::string_view remark;
  std::string_view harmless;
};
constexpr RemovedKey kRemoved[] = {
    {"data.pad", "", "the random crop adds a border of 4 pixels", "4"},
    {"data.prefetch", "", "batches are prepared ahead by threads", "*"},
    {"evaluate.groups", "", "only the merged model is scored", "false"},
    {"method.full_phase.sync_every", "", "dense phases average their gradients at each step", "1"},
    {"method.ramp_start", "", "a ramp starts at 1e-5", "1.0e-05"},
    {"method.rank.fraction", "method.rank.ratio", "with method.rank.rule=ratio", "0.1"},
    {"method.svd", "", "every decomposition computes all singular values", "auto"},
    {"optimizer.fraction", "", "Muon takes whole matrices, and factors as any other", "1"},
    {"optimizer.factor_step", "", "Muon takes factors as any other matrix", "plain"},
    {"reducer.chunk method.outer.wire.chunk method.full_phase.reducer.chunk", "",
     "a chunk has 128 elements if reducer.bits is below 1, else 64", "auto"},
    {"order.sketch", "order.wire", "int8; the count sketch was removed", "128"},
    {"reducer.select method.outer.wire.select method.full_phase.reducer.select", "",
     "hylo's workers choose their filters together", "consensus"}};

// Returns the table's row with this word, or null.
const auto* find_word(const auto& table, const std::string& word) {
  const auto found = std::ranges::find_if(table, [&](const auto& row) {
    return std::ranges::count(split_text(row.words, ' '), word) > 0;
  });
  return found == std::end(table) ? nullptr : &*found;
}

}  // namespace

std::span<const OtherWord> other_words() {
  return kWords;
}

std::optional<Instead> instead_of(const std::string& name) {
  std::string word = lower_case(name);
  std::ranges::replace(word, '-', '_');
  if (const RemovedKey* const removed = find_word(kRemoved, word)) {
    return Instead{
        std::string(removed->key), std::string(removed->remark), std::string(removed->harmless)};
  }
  const OtherWord* const other = find_word(kWords, word.substr(word.rfind('.') + 1));
  return other == nullptr
             ? std::nullopt
             : std::optional(Instead{std::string(other->key), std::string(other->remark)});
}

}  // namespace abtrain::config
