// Prompts without a tokenizer: one common English word for each token id. Most vocabularies spend about one token on
// each, so lengths are approximate and what the server counted is reported beside what was asked. Equal ids give equal
// words, so shared documents stay shared and unique prompts unique.
#pragma once

#include "workload/schedule.h"

namespace goodput {

// Gives every request of a schedule made without a tokenizer its text.
void fill_with_words(Schedule&);

}  // namespace goodput
