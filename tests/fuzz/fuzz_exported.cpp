// A file of torch.export.save(): a byte that says whether what follows is its graph or its list of
// tensors, in JSON. The rest of the file is that of a small model.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <sys/resource.h>

#include "nn/export_file.h"
#include "nn/model.h"
#include "target.h"
#include "temp_folder.h"

namespace abtrain::fuzz {

const std::vector<std::string> kWords = {
    "\"as_int\":",
    "\"as_tensor\":{\"name\":\"a\"}",
    "\"as_tensors\":[{\"name\":\"a\"}]",
    "\"as_ints\":[2,3]",
    "\"as_none\":true",
    "\"as_float\":\"-Infinity\"",
    "\"as_sym_int\":{\"as_name\":\"a\"}",
    "\"as_device\":{}",
    "\"target\":\"torch.ops.aten.conv2d.default\"",
    "\"target\":\"torch.ops.aten.addmm.default\"",
    "\"target\":\"torch.ops.aten.matmul.default\"",
    "\"target\":\"torch.ops.aten.reshape.default\"",
    "\"target\":\"torch.ops.aten.cat.default\"",
    "\"target\":\"torch.ops.aten.index.Tensor\"",
    "\"target\":\"torch.ops.aten.dropout.default\"",
    "\"target\":\"torch.ops.aten.batch_norm.default\"",
    "\"target\":\"torch.ops.aten.scaled_dot_product_attention.default\"",
    "\"target\":\"torch.ops.aten.sym_size.int\"",
    "\"target\":\"_operator.floordiv\"",
    "\"target\":\"torch.ops.higher_order.wrap_with_set_grad_enabled\""};

void read_input(std::string_view input) {
  static const TempFolder folder;
  static const bool limited = [] {
#ifndef __SANITIZE_ADDRESS__
    // A graph may ask for any amount of memory; where there is not so much, that is an error.
    const rlimit most{std::size_t{8} << 30, std::size_t{8} << 30};
    setrlimit(RLIMIT_AS, &most);
#endif
    return true;
  }();
  if (input.empty() || !limited) {
    return;
  }
  testing::ExportFile file = testing::small_export();
  (bytes_of(input)[0] % 2 == 1 ? file.weights : file.program) = input.substr(1);
  nn::ModelOptions options;
  options.name = "exported";
  options.file = folder.file("model.pt2");
  file.write(*options.file);
  refusing({ErrorKind::DamagedData, ErrorKind::Config}, [&] {
    const auto model = nn::make_model(options, {1, 2, 3, 4});
    model->initialize(nn::InitName::Kaiming, 1);
    model->seed_dropout(1);
    const at::NoGradGuard no_grad;
    model->forward(at::ones({2, 1, 2, 3}), true);
    model->forward(at::ones({2, 1, 2, 3}), false);
  });
}

}  // namespace abtrain::fuzz
