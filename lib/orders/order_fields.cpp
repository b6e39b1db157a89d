#include "base/options.h"
#include "orders/order_kind.h"
#include "orders/order_options.h"

namespace abtrain::orders {
namespace {

const Names<OrderWire> kWires = {{"fp32", OrderWire::Fp32}, {"int8", OrderWire::Int8}};

}  // namespace

std::string name_of(OrderWire wire) {
  return name_in(kWires, wire);
}

Fields fields_of(OrderOptions& o) {
  Fields f;
  f.choice(
      "name", o.name, order_names(),
      "order of the examples; grab, id-grab and cd-grab derive each "
      "epoch's order from the gradients of the previous epoch "
      "(docs/methods/orders.md)");
  f.choice(
       "unit", o.unit, {{"microbatch", OrderUnit::Microbatch}, {"example", OrderUnit::Example}},
       "what is ordered: a worker's images of a step, which then stay together, or single images, "
       "each by its own gradient")
      .of({"grab", "id-grab", "cd-grab"});
  f.choice("wire", o.wire, kWires, "how cd-grab sends gradient differences").of({"cd-grab"});
  return f;
}

}  // namespace abtrain::orders
