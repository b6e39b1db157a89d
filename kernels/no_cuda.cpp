// Builds without CUDA link these stubs; ops/launch.h never calls them.
#include "kernels/adagrad.h"
#include "kernels/augment_images.h"
#include "kernels/chunks.h"
#include "kernels/count_sketch.h"
#include "kernels/difference_codes.h"
#include "kernels/gram_schmidt.h"
#include "kernels/hadamard.h"
#include "kernels/level_codes.h"
#include "kernels/magnitudes.h"
#include "kernels/pair_signs.h"
#include "kernels/quantize.h"
#include "kernels/reduce_buffers.h"
#include "kernels/rows.h"
#include "kernels/sign_codes.h"
#include "kernels/twobit_codes.h"
#include "kernels/wire_codes.h"

namespace abtrain::kernels {

namespace {

constexpr int kNoDevice = 100;  // cudaErrorNoDevice

}  // namespace

int pair_signs(const PairSigns&, void*) {
  return kNoDevice;
}
int encode_signs(const EncodeSigns&, void*) {
  return kNoDevice;
}
int serve_signs(const ServeSigns&, void*) {
  return kNoDevice;
}
int decode_signs(const DecodeSigns&, void*) {
  return kNoDevice;
}
int encode_above(const EncodeAbove&, void*) {
  return kNoDevice;
}
int encode_by_chance(const EncodeByChance&, void*) {
  return kNoDevice;
}
int subtract_levels(const SubtractLevels&, void*) {
  return kNoDevice;
}
int average_levels(const AverageLevels&, void*) {
  return kNoDevice;
}
int average_byte_levels(const AverageByteLevels&, void*) {
  return kNoDevice;
}
int gram_schmidt(float*, const RowSetList&, void*) {
  return kNoDevice;
}
int hadamard(float*, std::int64_t, int, void*) {
  return kNoDevice;
}
int encode_difference(const EncodeDifference&, void*) {
  return kNoDevice;
}
int decode_differences(const DecodeDifferences&, void*) {
  return kNoDevice;
}
int add_with_norms(
    float*,
    const float*,
    bool,
    std::int64_t,
    std::int64_t,
    float*,
    void*) {
  return kNoDevice;
}
int take_chunks(const Chunks&, float*, int, void*, void*) {
  return kNoDevice;
}
int put_chunks(const Chunks&, const void*, float*, bool, void*) {
  return kNoDevice;
}
int block_norms(const float*, std::int64_t, std::int64_t, int, float*, void*) {
  return kNoDevice;
}
int quantize_blocks(const Quantize&, void*) {
  return kNoDevice;
}
int dequantize_blocks(const Dequantize&, void*) {
  return kNoDevice;
}
int sum_codes(const SumCodes&, void*) {
  return kNoDevice;
}
int update_scale(const UpdateScale&, void*) {
  return kNoDevice;
}
int reduce_buffers(
    const BufferList&,
    const BufferList&,
    std::int64_t,
    Element,
    Combine,
    void*) {
  return kNoDevice;
}
int adagrad_step(const AdagradStep&, void*) {
  return kNoDevice;
}
int magnitudes(const Magnitudes&, void*) {
  return kNoDevice;
}
int encode_threshold(const EncodeThreshold&, void*) {
  return kNoDevice;
}
int average_codes(const AverageCodes&, void*) {
  return kNoDevice;
}
int pack_sums(const PackSums&, void*) {
  return kNoDevice;
}
int count_sketch(const CountSketch&, void*) {
  return kNoDevice;
}
int augment_images(const AugmentImages&, Element, void*) {
  return kNoDevice;
}
int row_norms(const RowNorms&, void*) {
  return kNoDevice;
}
int choose_rows(const ChooseRows&, void*) {
  return kNoDevice;
}
int send_rows(const SendRows&, void*) {
  return kNoDevice;
}
int add_rows(const AddRows&, void*) {
  return kNoDevice;
}
int encode_wire(const EncodeWire&, void*) {
  return kNoDevice;
}
int decode_wire(const DecodeWire&, void*) {
  return kNoDevice;
}

}  // namespace abtrain::kernels
