// The second form of bench_svd: decomposes all layers of a model by rank rule.
#pragma once

#include <ATen/Parallel.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <optional>

#include "device.h"
#include "device/side_stream.h"
#include "device/stream.h"
#include "linalg/parallel.h"
#include "linalg/rank_rule.h"
#include "linalg/svd.h"
#include "svd_shapes.h"

namespace abtrain::bench {

struct Setting {
  std::map<std::string, std::string> text = {{"model", ""},    {"shape", ""},    {"device", "cpu"},
                                             {"threads", "1"}, {"repeats", "3"}, {"spectrum", ""},
                                             {"check", "1"}};

  // Reads "--key value" pairs; returns false where a key is unknown or a value
  // is missing.
  bool read(const std::vector<std::string>& arguments) {
    for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
      const std::string key = arguments[i].substr(std::min<std::size_t>(2, arguments[i].size()));
      if (text.count(key) == 0) {
        return false;
      }
      text[key] = arguments[i + 1];
    }
    return arguments.size() % 2 == 0;
  }
  int number(const std::string& key) const {
    return std::atoi(text.at(key).c_str());
  }
};

inline std::vector<Shape> shapes_of(const Setting& setting) {
  if (setting.text.at("model") == "vgg16") {
    return vgg16();
  }
  if (setting.text.at("model") == "resnet50") {
    return resnet50();
  }
  long long m = 0;
  long long n = 0;
  if (std::sscanf(setting.text.at("shape").c_str(), "%lldx%lld", &m, &n) == 2 && m >= n && n > 0) {
    return {{m, n, m}};
  }
  return {};
}

// Reference singular values, from LAPACK's gesdd in float64.
inline std::vector<double> exact_values(const at::Tensor& w) {
  const auto s = linalg::gesdd(w.cpu()).s.contiguous();
  return {s.const_data_ptr<double>(), s.const_data_ptr<double>() + s.numel()};
}

inline int decompose_model(const std::vector<std::string>& arguments) {
  Setting setting;
  if (!setting.read(arguments) || shapes_of(setting).empty()) {
    std::fprintf(stderr, "bench_svd: wrong arguments, see the top of bench_svd.cpp\n");
    return 2;
  }
  const auto shapes = shapes_of(setting);
  const at::Device device = device_of(setting.text["device"]);
  const int threads = setting.number("threads");
  at::set_num_threads(threads);
  device::SideStream stream(device);

  linalg::RankRule sigma;
  linalg::RankRule ratio;
  ratio.rule = linalg::RankRuleName::Ratio;
  std::printf(
      "%zu matrices on %s, %d thread(s), median of %d\n", shapes.size(),
      setting.text["device"].c_str(), threads, setting.number("repeats"));
  for (const std::string spectrum : {"orthogonal", "kaiming", "trained"}) {
    if (!setting.text["spectrum"].empty() && setting.text["spectrum"] != spectrum) {
      continue;
    }
    std::vector<at::Tensor> matrices;
    std::vector<double> costs;
    for (const Shape& s : shapes) {
      matrices.push_back(
          spectrum == "orthogonal" ? orthogonal(s, device)
          : spectrum == "kaiming"  ? kaiming(s, device)
                                   : trained(s, device));
      costs.push_back(linalg::decomposition_cost(s.m, s.n));
    }
    std::vector<std::vector<double>> exact;
    for (const auto& m : matrices) {
      exact.push_back(setting.number("check") != 0 ? exact_values(m) : std::vector<double>());
    }
    for (const auto& rule : {sigma, ratio}) {
      std::vector<double> times;
      std::vector<std::optional<linalg::Decomposition>> found(matrices.size());
      std::vector<linalg::RankChoice> choices(matrices.size());
      // On a GPU a first round, not timed, loads libraries.
      for (int i = device.is_cuda() ? -1 : 0; i < setting.number("repeats"); ++i) {
        device::synchronize(device);
        const auto start = std::chrono::steady_clock::now();
        stream.run([&] {
          linalg::for_each_matrix(costs, device.is_cuda() ? 1 : threads, [&](std::size_t l) {
            found[l].emplace(matrices[l], std::to_string(l));
            choices[l] = linalg::choose_rank(
                rule, {"", shapes[l].m, shapes[l].n, found[l]->singular_values()});
            if (choices[l].rank > 0) {
              found[l]->factors(matrices[l], choices[l].rank);
            }
          });
        });
        device::synchronize(device);
        const std::chrono::duration<double, std::milli> spent =
            std::chrono::steady_clock::now() - start;
        if (i >= 0) {
          times.push_back(spent.count());
        }
      }
      std::sort(times.begin(), times.end());
      double worst = 0;
      int wrong = 0;
      for (std::size_t l = 0; l < found.size(); ++l) {
        if (exact[l].empty()) {
          continue;
        }
        const auto wanted = linalg::choose_rank(rule, {"", shapes[l].m, shapes[l].n, exact[l]});
        wrong += wanted.rank != choices[l].rank;
        for (std::int64_t i = 0; i < choices[l].rank; ++i) {
          const auto at = static_cast<std::size_t>(i);
          worst = std::max(
              worst, std::abs(found[l]->singular_values()[at] - exact[l][at]) / exact[l][0]);
        }
      }
      std::printf(
          "%-10s %-5s %9.1f ms, ", spectrum.c_str(), rule.rule == sigma.rule ? "sigma" : "ratio",
          times[times.size() / 2]);
      if (setting.number("check") != 0) {
        std::printf("worst error %.1e, ranks other than gesdd's: %d\n", worst, wrong);
      } else {
        std::printf("not checked\n");
      }
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace abtrain::bench
