// Options of the config's `order:` section.
#pragma once

#include <string>

namespace abtrain {
class Fields;
}

namespace abtrain::orders {

// The units of an order derived from gradients: all of a worker's examples of a step, which stay
// together, or single examples.
enum class OrderUnit { Microbatch, Example };
// The form in which cd-grab sends gradient differences.
enum class OrderWire { Fp32, Int8 };

struct OrderOptions {
  std::string name = "shuffle";  // one of order_names()
  // The rest applies only to orders derived from gradients.
  OrderUnit unit = OrderUnit::Microbatch;
  OrderWire wire = OrderWire::Fp32;
};

// The wire's name in a configuration.
std::string name_of(OrderWire wire);

// The table of the options' keys, ranges and help texts (base/options.h).
Fields fields_of(OrderOptions& options);

}  // namespace abtrain::orders
