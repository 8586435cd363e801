//go:build !race

package configtest

const raced = false
