// What an executor can do, read back from it; the scheduler plans within.
#pragma once

#include "base/units.h"

namespace goodput {

struct KvGeometry {
  Tokens block_size{16};
  Blocks total{0};            // blocks of the whole cache
  Blocks per_slot{0};         // most blocks one slot can hold (unified cells: total)
  int slots = 0;              // usable slots, running and retained together, <= 256
  bool share_copies = false;  // sharing copies cells instead of adding an owner
  bool can_truncate = true;
};

struct Capabilities {
  KvGeometry kv;
  Tokens max_batch_tokens{0};  // of one run()
  Tokens max_len{0};           // of one sequence
};

}  // namespace goodput
