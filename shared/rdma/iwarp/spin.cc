// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/spin.h"

#include <sched.h>

namespace pnfsrdma::rdma::iwarp {

Spin::Spin() {
  look_at_affinity();
}

void Spin::look_at_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  several_cpus_ = ::sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 1;
}

void Spin::slept(Duration waited) {
  if (++sleeps_ % kRecheck == 0) look_at_affinity();
  if (!several_cpus_) {
    budget_ = Duration(0);
  } else if (waited <= kLongest) {
    budget_ = kLongest;  // spinning would have caught it
  } else {
    budget_ = budget_ > kShortest ? budget_ / 2 : Duration(0);
  }
}

}  // namespace pnfsrdma::rdma::iwarp
