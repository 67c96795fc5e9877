/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface references. Thread rule: see state.h. */
#pragma once

struct module;
/* A module goes, and its references with it. */
void references_drop(const struct module *m);
