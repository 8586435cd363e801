package config

import (
	"maps"
	"reflect"

	"github.com/alecthomas/kong"
)

// HelpTexts is a settings struct with help texts that are too long for a tag. The method returns the texts by name.
// A tag refers to a text as help:"${name}". A name is unique in a command, and has letters, digits and underscores.
type HelpTexts interface {
	HelpTexts() map[string]string
}

// helpTexts returns the help texts of a settings struct and of all structs in it.
func helpTexts(settings reflect.Value) kong.Vars {
	texts := kong.Vars{}
	if settings.Kind() != reflect.Struct || !settings.CanInterface() {
		return texts
	}
	if s, ok := settings.Interface().(HelpTexts); ok {
		maps.Copy(texts, s.HelpTexts())
	}
	for i := range settings.NumField() {
		maps.Copy(texts, helpTexts(settings.Field(i)))
	}
	return texts
}
