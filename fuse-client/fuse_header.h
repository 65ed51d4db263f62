// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one place that says which FUSE interface is meant.
#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>  // IWYU pragma: export
