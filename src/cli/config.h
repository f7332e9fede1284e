// Where a flag's value comes from when the command line does not say: flags > GOODPUT_* environment > ./goodput.toml >
// $XDG_CONFIG_HOME/goodput/config.toml > the default. One merge for all verbs; a key that no flag has is an error.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"

namespace goodput {

struct Origin {
  std::string flag, value, from;  // from: "flag", "GOODPUT_MAP_SEED", a file's path, "default"
};

// Fills every option of `app` (the verb's) that the command line left open, and says where each value came from. Keys:
// [verb] tables in the files, names as the flags' with dashes or underscores; GOODPUT_<VERB>_<FLAG> in the environment.
// kUsage names the file and line of a bad value or an unknown key, with the nearest known one.
Result<std::vector<Origin>> merge_configuration(CLI::App& app, const std::string& verb);

// The options that were given (by flag, environment or file), as arguments that parse to the same; those of `but` left
// out.
std::vector<std::string> given_arguments(const CLI::App& app, const std::vector<std::string>& but);

}  // namespace goodput
