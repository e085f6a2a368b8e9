// The traits of all formats. A format is a struct in quant/<fmt>/format.h with
//   kName, kGgufType  its name and number in GGUF files
//   kBlockElements    consecutive elements of a row that share a Block
//   Block             byte for byte as it lies in a file, without padding
//   kFloats           the floating-point numbers of a block; all else in it are integers
//   unpack_row        the definition of its numbers (UnpackRow)
// and, where kernels read its codes (kernels/packed.h): codes_of(block, s, codes), which writes the unsigned
// codes of elements 32 s .. 32 s + 31 in element order, and kZeroPoint, the code that stands for zero in a
// format without a minimum.
#pragma once

#include "quant/bf16/format.h"
#include "quant/f16/format.h"
#include "quant/f32/format.h"
#include "quant/iq2_s/format.h"
#include "quant/iq2_xs/format.h"
#include "quant/iq2_xxs/format.h"
#include "quant/iq3_s/format.h"
#include "quant/iq3_xxs/format.h"
#include "quant/iq4_nl/format.h"
#include "quant/iq4_xs/format.h"
#include "quant/mxfp4/format.h"
#include "quant/nvfp4/format.h"
#include "quant/q1_0/format.h"
#include "quant/q2_0/format.h"
#include "quant/q2_k/format.h"
#include "quant/q3_k/format.h"
#include "quant/q4_0/format.h"
#include "quant/q4_1/format.h"
#include "quant/q4_k/format.h"
#include "quant/q5_0/format.h"
#include "quant/q5_1/format.h"
#include "quant/q5_k/format.h"
#include "quant/q6_k/format.h"
#include "quant/q8_0/format.h"
#include "quant/tq1_0/format.h"
#include "quant/tq2_0/format.h"
