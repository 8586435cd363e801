package docspage

import (
	"fmt"
	"html/template"
)

// languages are the languages of the page, the default one first, with their own names.
var languages = []struct{ code, name string }{{"en", "English"}, {"uk", "Українською"}}

// ukrainian maps the short English texts of the page to Ukrainian. Longer texts are in the guides, and the texts
// of the script are in docs.js.
var ukrainian = map[string]string{
	"Asset registry: documentation of the API, version": "Реєстр активів: документація API, версія",
	"Asset registry":           "Реєстр активів",
	"Skip to content":          "Перейти до змісту",
	"Versions":                 "Версії",
	"Language":                 "Мова",
	"Contents":                 "Зміст",
	"Documentation of the API": "Документація API",
	"In":                       "Мовою",

	"First asset in five minutes": "Перший актив за п’ять хвилин",
	"Documents and their files":   "Документи та їхні файли",
	"Tokens and ownership":        "Токени та власність",
	"Recovery and large loads":    "Відновлення та великі завантаження",
	"States":                      "Стани",
	"Lots and the concierge":      "Лоти та консьєрж",
	"Deletion":                    "Видалення",
	"Following the feed":          "Як стежити за стрічкою",
	"Errors":                      "Помилки",
	"Limits":                      "Ліміти",

	"States of an asset": "Стани активу",
	"owner":              "власник",
	"concierge":          "консьєрж",
	"The owner takes an asset from draft to pending, and from pending to deleted. The concierge takes it from pending " +
		"to verification, to active and to complete, and from verification or active back to pending.": "Власник " +
		"переводить актив зі стану draft у pending і з pending у deleted. Консьєрж переводить його з pending у " +
		"verification, active і complete, а також із verification або active назад у pending.",

	"Reference":  "Довідник",
	"Request":    "Запит",
	"Does":       "Що робить",
	"key":        "ключ",
	"deprecated": "застаріле",
	"Operations": "Операції",
	"Types":      "Типи",
	"Parameters": "Параметри",
	"Fields":     "Поля",
	"Answers":    "Відповіді",
	"Name":       "Назва",
	"Type":       "Тип",
	"Meaning":    "Значення",
	"required":   "обов’язково",
	"Body":       "Тіло",
}

// functions returns the functions of templates in a language: the function `t` translates a text, and the function
// `en` marks an element whose text is English.
func functions(language string) template.FuncMap {
	return template.FuncMap{
		"t": func(text string) (string, error) {
			if language == "en" {
				return text, nil
			}
			if translated, ok := ukrainian[text]; ok {
				return translated, nil
			}
			return "", fmt.Errorf("there is no translation of %q", text)
		},
		"en": func() template.HTMLAttr {
			if language == "en" {
				return ""
			}
			return ` lang="en"`
		},
	}
}
