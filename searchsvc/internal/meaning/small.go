package meaning

import (
	"slices"
	"strings"
	"unicode/utf8"

	"asset-registry/shared/ukrainian"
)

// smallWords do not decide what a question means: prepositions, words about buying and selling, kinds of streets
// and places, and words before numbers. They are in their normal form.
var smallWords = setOf(`
	а або але без біля в від для до є ж з за зі із й і інший його її їх коло крім між на над не ні о об по поруч під після
	при про проти та та-й так те то у це цей через чи що як який яка яке які де тут там щось мені треба потрібно потрібен
	потрібна потрібні хочу хотів хочемо шукаю шукаємо знайти знайдіть показати покажіть можна
	купити купую куплю купимо купівля купляю придбати придбаю придбання продаж продажу продажі продам продати продаю
	продається продаються продано продавець ціна ціною ціни ціну вартість дешево дешевий дешева дешеве недорого недорогий
	недорога недороге недорогі терміново термінова термінове терміновий новий аукціон аукціону аукціони аукціоні
	торги торгах торгів приватизація приватизації
	приватизацію лот лота лоти лотів оголошення пропозиція пропозиції нерухомість нерухомості майно майна
	об'єкт об'єкти об'єкта об'єктів актив активи активів держава державне державний забудову забудови
	оренда оренди оренду орендувати орендую здам здається зняти
	и или для от под над при без около рядом из с со во на в к ко что где как это нужен нужна нужно хочу ищу найти
	купить куплю покупка продажа продать продам продается цена цены стоимость дешево недорого срочно аукцион торги
	приватизация объявление аренда снять недвижимость имущество объект объекты
	the a an of in on at for to from with by and or near buy sale sell price cheap auction rent property asset assets
	вул вулиця вулиці вулицю ул улица просп проспект проспекті пр пр-т провул пров провулок пл бульв бульвар б-р шосе узвіз
	street str st avenue ave
	м місто місті міста город с село селі села смт селище селища селищі
	обл область області р-н район районі району буд б корп
	кв oblast region city village town
	n no nr номер номером інв інвентарний інвентарна інвентарні код коду єдрпоу едрпоу edrpou
	едр ідентифікаційний cav ps cpv дк dk
	кадастровий реєстраційний id ід загальна загальною загальної площа площею площі пл заг метрів метри кв.м sqm
`)

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// isSmall reports whether a word is a unit, one of smallWords, or a single letter, such as the letter of a house.
func isSmall(a ukrainian.Asked) bool {
	return a.IsUnit || !a.HasDigit && (smallWords[a.Text] || utf8.RuneCountInString(a.Text) == 1)
}

// areSmall reports whether a text has only small words.
func areSmall(text string) bool {
	return !slices.ContainsFunc(ukrainian.Ask(text), func(a ukrainian.Asked) bool { return !isSmall(a) })
}
