// The choice and what the rules of thumb would have cost, from the confirmation runs.
#pragma once

#include <vector>

#include "map/measure.h"
#include "map/result.h"

namespace goodput {

// Which of the measured capacities to confirm: the most goodput where it was measured; among equals the smaller batch,
// because it has the shorter gaps. nullptr when none met the floor.
const Capacity* best_measured(const std::vector<Capacity>&);

// The operating rate of a confirmation: a measured capacity as it is, a predicted one a little below, since at the
// capacity itself the attainment equals the floor and noise alone would decide.
double confirmation_rate(const Capacity&);

// Goodput over replicates: Student's interval. At least one replicate.
Estimate goodput_estimate(const std::vector<MeasuredPoint>&, double (*of)(const PointSummary&));

// 1 − rule ÷ choice, paired replicate by replicate (the same seeds).
Estimate regret_estimate(const std::vector<MeasuredPoint>& rule, const std::vector<MeasuredPoint>& choice);

// Whether the pooled confirmation leaves it open if some class attains the floor.
bool undecided(const std::vector<MeasuredPoint>&, double floor);

// Settings whose predicted goodput is within `margin` (a share) of the best: the measurement cannot tell them apart.
std::vector<Settings> not_separable(const std::vector<Capacity>&, const Settings& chosen, double margin);

}  // namespace goodput
