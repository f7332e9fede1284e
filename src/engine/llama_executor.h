// Batches computed by libllama: unified KV cells, one context. The only file of the room that sees llama.h is
// llama_executor.cc.
#pragma once

#include <memory>

#include "engine/executor.h"
#include "model/model.h"
#include "scheduler/settings.h"

namespace goodput {

struct LlamaOptions {
  Tokens kv_tokens{32768};  // cells of the whole cache
  int threads = 0;          // 0: max(1, allowed processors − 1)
};

// kUsage when the settings do not fit the model (context too long, …), kFailed when libllama refuses.
Result<std::unique_ptr<Executor>> make_llama_executor(std::shared_ptr<const Model>, const Settings&,
                                                      const LlamaOptions&);

}  // namespace goodput
