// What is refused whatever the scheduler's state: known before anything is queued, so that a caller hears it at once.
#pragma once

#include "base/result.h"
#include "scheduler/batch.h"
#include "scheduler/capabilities.h"
#include "scheduler/settings.h"

namespace goodput {

// kUsage: an empty prompt, no new token asked for, a length beyond max_model_len or beyond what the whole KV cache (or
// one slot of it) holds.
Result<void> can_ever_run(const Request&, const Settings&, const KvGeometry&);

}  // namespace goodput
