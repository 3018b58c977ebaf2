/* The parts of the module. SPDX-License-Identifier: MIT */
#pragma once

#include <nanobind/nanobind.h>

void bind_caches(nanobind::module_ &m);
void bind_checkpoints(nanobind::module_ &m);
void bind_conversions(nanobind::module_ &m);
void bind_diagnoses(nanobind::module_ &m);
void bind_frequencies(nanobind::module_ &m);
void bind_models(nanobind::module_ &m);
void bind_rows(nanobind::module_ &m);
void bind_rotate(nanobind::module_ &m);
void bind_tables(nanobind::module_ &m);

/* None for NULL; what is no UTF-8 in a file becomes U+FFFD. */
nanobind::object text(const char *given);
