// Package main is empty until a client is generated: scenario.go needs it.
package main

import _ "github.com/oapi-codegen/runtime" // the generated client needs it
