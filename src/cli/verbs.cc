#include <array>

#include "cli/verb.h"

namespace goodput {

extern const Verb kMapVerb, kBenchVerb, kScoreVerb, kDefinitionsVerb, kCompareVerb, kServeVerb, kStudyVerb, kModelVerb,
    kStepsVerb, kConfigVerb, kLoadWorkerVerb;

// In the order of `goodput help`.
std::span<const Verb> verbs() {
  static const std::array kVerbs{kMapVerb,   kBenchVerb, kScoreVerb, kDefinitionsVerb, kCompareVerb,   kServeVerb,
                                 kStudyVerb, kModelVerb, kStepsVerb, kConfigVerb,      kLoadWorkerVerb};
  return kVerbs;
}

}  // namespace goodput
