package site

import "asset-registry/shared/assetfilter"

// texts has the texts of all pages; the keys are their names. A test compares the keys with the names in the
// templates.
var texts = withFilters(map[string]text{
	"site.name":   {"Реєстр активів", "Asset registry"},
	"site.locale": {"uk_UA", "en_GB"},
	"site.about": {
		"Публічний реєстр активів: пошук, стани, документи та доказ кожної зміни.",
		"The public registry of assets: search, states, documents and a proof of each change.",
	},

	"nav.skip":       {"Перейти до змісту", "Skip to content"},
	"nav.label":      {"Розділи", "Sections"},
	"nav.search":     {"Пошук", "Search"},
	"nav.statistics": {"Статистика", "Statistics"},
	"nav.about":      {"Про реєстр", "About"},
	"nav.languages":  {"Мова", "Language"},
	"nav.uk":         {"Українська", "Українська"},
	"nav.en":         {"English", "English"},

	"footer.api":   {"Документація API", "API documentation"},
	"footer.about": {"Про реєстр", "About the registry"},
	"footer.feed":  {"Стрічка Atom", "Atom feed"},
	"footer.time":  {"Час на сайті — київський.", "Times are in Kyiv's time zone."},

	"size.kilo": {"КБ", "kB"},
	"size.mega": {"МБ", "MB"},

	"time.moment": {"менш ніж хвилина", "less than a minute"},
	"as.of":       {"Станом на", "As of"},

	"search.title":   {"Пошук активів", "Search for assets"},
	"search.results": {"результати пошуку", "search results"},
	"search.lead": {
		"Державне й комунальне майно, яке готують до приватизації: що це, де воно, у якому стані та хто " +
			"за нього відповідає.",
		"State and municipal property on its way to privatisation: the property, its place, its state, " +
			"and who answers for it.",
	},
	"search.label": {
		"Слова з назви, опису чи адреси, номер або код",
		"Words of the title, description or address, a number or a code",
	},
	"search.button":  {"Знайти", "Search"},
	"search.others":  {"та інші складові", "and other items"},
	"search.sort":    {"Порядок", "Order"},
	"search.filters": {"Фільтри", "Filters"},
	"search.apply":   {"Застосувати фільтри", "Apply filters"},
	"search.clear":   {"Скинути всі фільтри", "Clear all filters"},
	"search.active":  {"Застосовані фільтри", "Filters in effect"},
	"search.remove":  {"Прибрати фільтр: %s, %s", "Remove the filter: %s, %s"},
	"search.found":   {"Знайдено", "Found"},
	"search.all":     {"У реєстрі", "The registry has"},
	"search.none":    {"Нічого не знайдено", "Nothing was found"},
	"search.none.hint": {
		"Перевірте написання або спробуйте загальніші слова.",
		"Check the spelling, or use more general words.",
	},
	"search.none.filters": {
		"Жоден актив не відповідає цим фільтрам.", "No asset meets these filters.",
	},
	"search.empty":        {"У реєстрі ще немає активів.", "The registry has no assets yet."},
	"search.missing":      {"Жоден актив не має слів: %s.", "No asset has these words: %s."},
	"search.tries":        {"Спробуйте інакше:", "Try it otherwise:"},
	"search.freely":       {"Шукати й близькі слова", "Search for similar words, too"},
	"search.read":         {"За запитом «%s» нічого немає.", "Nothing for «%s»."},
	"search.read.used":    {"Показано: %s.", "Shown: %s."},
	"search.read.without": {"Без слів: %s.", "Without: %s."},
	"search.read.partial": {"Одного слова може бракувати.", "One word may be missing."},
	"search.read.stopped": {"Схожі слова шукали не до кінця: їх забагато. Візьміть менше слів.",
		"The search for similar words ended early: there are too many. Use fewer words."},
	"search.read.area":   {"Площа", "Area"},
	"search.read.insist": {"Шукати саме так", "Search for exactly this"},

	"search.unknown":         {"Сторінка не знає параметра %s.", "The page does not know the parameter %s."},
	"search.unknown.nearest": {"Найближчий: %s.", "The nearest is %s."},

	"asset.pictures":             {"Зображення", "Pictures"},
	"search.next":                {"Наступна сторінка", "Next page"},
	"search.prev":                {"Попередня сторінка", "Previous page"},
	"search.first":               {"Перша сторінка", "First page"},
	"search.page":                {"Сторінка %s з %s", "Page %s of %s"},
	"search.gone":                {"На цій сторінці активів уже немає.", "This page has no assets any more."},
	"search.rows":                {"Активів на сторінці", "Assets per page"},
	"search.pages":               {"Сторінки результатів", "Pages of results"},
	"search.feed":                {"Стрічка Atom цього пошуку", "Atom feed of this search"},
	"search.export.cut":          {"(у файлах перші 10 000)", "(files have the first 10,000)"},
	"search.export.csv":          {"CSV", "CSV"},
	"search.export.xlsx":         {"XLSX", "XLSX"},
	"search.export.geojson":      {"GeoJSON", "GeoJSON"},
	"search.api":                 {"Цей пошук в API", "This search in the API"},
	"search.more":                {"Показано найчастіші значення", "The most frequent values are shown"},
	"search.counts":              {"Статистика цього пошуку", "Statistics of this search"},
	"statistics.found":           {"Знайдено активів", "Assets found"},
	"statistics.all":             {"Статистика всіх активів", "Statistics of all assets"},
	"search.whole":               {"Показати більше", "Show more"},
	"search.type.classification": {"Код або його початок", "A code or its beginning"},
	"search.type.locality":       {"Інший населений пункт", "Another locality"},
	"search.type.custodian":      {"Код ЄДРПОУ балансоутримувача", "Number of the custodian (UA-EDR)"},
	"search.faults":              {"Запит містить помилки", "The search has mistakes"},
	"search.fault.query":         {"частину адреси не можна прочитати", "a part of the address cannot be read"},
	"search.fault":               {"неправильне значення", "the value is wrong"},
	"search.fault.text":          {"до 600 символів і 64 слів", "at most 600 characters and 64 words"},
	"search.changed":             {"Змінено", "Changed"},
	"search.custodian":           {"Балансоутримувач", "Custodian"},
	"search.from":                {"від", "from"},
	"search.to":                  {"до", "to"},
	"search.nameless":            {"Код %s, без назви", "Code %s, no name"},
	"search.chosen":              {"обрано", "chosen"},

	"filter.q":              {"Слова", "Words"},
	"filter.month":          {"Місяць оприлюднення", "Month of publication"},
	"filter.published":      {"Дата оприлюднення", "Date of publication"},
	"filter.published_from": {"Оприлюднено від", "Published from"},
	"filter.published_to":   {"Оприлюднено до", "Published to"},
	"filter.modified_from":  {"Змінено від", "Changed from"},
	"filter.modified_to":    {"Змінено до", "Changed to"},
	"filter.quantity":       {"Кількість (площа, штуки)", "Quantity (area, pieces)"},
	"filter.quantity_from":  {"Кількість від", "Quantity from"},
	"filter.quantity_to":    {"Кількість до", "Quantity to"},
	"filter.quantity_unit":  {"Одиниця", "Unit"},
	"filter.sort":           {"Порядок", "Order"},
	"filter.search_after":   {"Сторінка", "Page"},

	"sort.relevance":  {"Найвідповідніші", "Most relevant"},
	"sort.-modified":  {"Нещодавно змінені", "Changed recently"},
	"sort.modified":   {"Давно змінені", "Changed long ago"},
	"sort.-published": {"Нещодавно оприлюднені", "Published recently"},
	"sort.published":  {"Давно оприлюднені", "Published long ago"},
	"sort.-area":      {"Найбільша площа", "Largest area"},
	"sort.area":       {"Найменша площа", "Smallest area"},

	"unit.":       {"будь-яка", "any"},
	"unit.m2":     {"м²", "m²"},
	"unit.ha":     {"га", "ha"},
	"unit.pieces": {"штуки", "pieces"},

	"asset.crumb":     {"Усі активи", "All assets"},
	"asset.back":      {"До результатів пошуку", "Back to the results"},
	"asset.copy":      {"Скопіювати посилання", "Copy the link"},
	"asset.copied":    {"Скопійовано.", "Copied."},
	"asset.contents":  {"Зміст запису", "On this page"},
	"asset.items":     {"Складові активу", "Items"},
	"asset.item":      {"Складова", "Item"},
	"asset.more":      {"Ще", "Further"},
	"asset.decisions": {"Рішення про приватизацію", "Decisions"},
	"asset.documents": {"Документи", "Documents"},
	"asset.versions":  {"Попередні версії", "Previous versions"},
	"asset.details":   {"Докладніше", "Details"},
	"asset.processes": {"Пов’язані процеси", "Related processes"},
	"asset.custodian": {"Балансоутримувач", "Custodian"},
	"asset.holder":    {"Розпорядник", "Holder"},
	"asset.period":    {"Період уточнень", "Rectification period"},
	"asset.technical": {"Технічні відомості", "Technical details"},
	"asset.json":      {"Запис у форматі JSON", "The record as JSON"},
	"asset.line":      {"Стани", "States"},
	"asset.now":       {"дотепер", "until now"},
	"asset.test":      {"Це тестовий запис. Такого активу немає.", "This is a test record. There is no such asset."},
	"asset.deleted": {
		"Актив знято з реєстру. Підстава — у документах.",
		"The asset was removed from the registry. The documents say why.",
	},
	"asset.untitled": {"Без назви", "Untitled"},

	"fact.kind":  {"Вид майна", "Kind of property"},
	"fact.place": {"Де розташовано", "Place"},
	"fact.sale":  {"Продаж", "Sale"},
	"fact.map":   {"На мапі", "On a map"},
	"fact.more":  {"та ще %d", "and %d more"},

	"changes.title": {"Зміни запису", "Changes of the record"},
	"changes.older": {"Давніші зміни", "Older changes"},
	"changes.back":  {"До запису", "To the record"},
	"changes.none": {
		"Публічний журнал не має змін цього запису.",
		"The public log has no changes of this record.",
	},
	"changes.waiting": {
		"Журнал ще не має найновішої зміни. Оновіть сторінку за кілька секунд.",
		"The log does not have the newest change yet. Reload the page in a few seconds.",
	},
	"changes.cut": {
		"Давніші зміни завеликі для сторінки. Вони є в публічному журналі.",
		"Older changes are too large for a page. The public log has them.",
	},
	"changes.failed":  {"Зміни зараз не вдалося прочитати.", "The changes could not be read just now."},
	"changes.publish": {"Запис оприлюднено", "The record was published"},
	"changes.import": {
		"Запис внесено до журналу, коли журнал почався",
		"The record entered the log when the log began",
	},
	"changes.withdraw": {"Запис вилучено з публічних", "The record ceased to be public"},
	"changes.erased": {
		"Зміст цієї зміни знищено адміністратором. Доказ зміни залишився.",
		"An administrator has destroyed the content of this change. Its proof stays.",
	},
	"changes.unknown": {"Запис до цієї зміни не зберігся.", "The record before this change is not known."},
	"changes.touched": {"Зміст запису не змінився.", "The content of the record stayed the same."},
	"changes.field":   {"Поле", "Field"},
	"changes.before":  {"Було", "Before"},
	"changes.after":   {"Стало", "After"},
	"changes.absent":  {"немає", "none"},
	"changes.more":    {"і ще", "and"},
	"changes.proof":   {"Доказ зміни %d", "Proof of change %d"},

	"check.title": {"Перевірка запису", "Check this record"},
	"check.lead": {
		"Кожну зміну запису внесено до публічного журналу з підписом, який не можна переписати непомітно.",
		"Each change of the record is in a public, signed log that nobody can rewrite unseen.",
	},
	"check.button": {"Перевірити цей запис", "Check this record"},
	"check.again":  {"Перевірити ще раз", "Check again"},
	"check.how": {
		"Ваш браузер сам перевірить доказ і порівняє його з цією сторінкою.",
		"Your browser verifies the proof by itself and compares it with this page.",
	},
	"check.running": {"Триває перевірка…", "Checking…"},
	"check.ok":      {"Запис справжній", "The record is authentic"},
	"check.ok.text": {
		"Усі значення на цій сторінці — ті самі, що в публічному журналі.",
		"All values on this page are those in the public log.",
	},
	"check.failed": {"Перевірку не пройдено", "The check has failed"},
	"check.failed.text": {
		"Не покладайтеся на цю сторінку. Збережіть доказ і повідомте про це.",
		"Do not rely on this page. Keep the proof and report this.",
	},
	"check.newer": {
		"Запис змінився, відколи ви відкрили сторінку. Оновіть її.",
		"The record has changed since you opened the page. Reload it.",
	},
	"check.waiting": {
		"Журнал ще не має цієї зміни. Спробуйте за кілька секунд.",
		"The log does not have this change yet. Try again in a few seconds.",
	},
	"check.unreachable": {"Доказ не вдалося отримати. Спробуйте ще раз.", "The proof could not be read. Try again."},
	"check.unsupported": {
		"Цей браузер не вміє перевіряти підписи Ed25519 на цій сторінці. Скористайтеся командою нижче.",
		"This browser cannot verify Ed25519 signatures on this page. Use the command below.",
	},
	"check.step.signature": {"Журнал підписано його ключем", "The log is signed with its key"},
	"check.step.included":  {"Зміна є в журналі", "The log has the change"},
	"check.step.asset":     {"Журнал підтверджує зміст запису", "The log confirms the content of the record"},
	"check.step.page":      {"Сторінка показує цей самий зміст", "The page shows the same content"},
	"check.passed":         {"Так", "Yes"},
	"check.not":            {"Ні", "No"},
	"check.skipped":        {"Не перевірено", "Not checked"},
	"check.values":         {"Значень порівняно", "Values compared"},
	"check.leaf":           {"Номер зміни в журналі", "Number of the change in the log"},
	"check.size":           {"Змін у журналі", "Changes in the log"},
	"check.log":            {"Журнал", "Log"},
	"check.key":            {"Ключ журналу", "Key of the log"},
	"check.key.hint": {
		"Ключ надав цей сайт. Для незалежної перевірки вставте ключ, який ви отримали іншим шляхом.",
		"This site has supplied the key. For an independent check, paste a key that you have from " +
			"elsewhere.",
	},
	"check.proof":   {"Доказ у форматі JSON", "The proof as JSON"},
	"check.command": {"Перевірити командою", "Check with a command"},
	"check.command.hint": {
		"Ці команди перевіряють той самий доказ без браузера.",
		"These commands verify the same proof without a browser.",
	},
	"check.wanted": {"КЛЮЧ", "KEY"},
	"check.none": {
		"Публічний журнал не має цього запису, тому перевірити його не можна.",
		"The public log does not have this record, so it cannot be checked.",
	},

	"statistics.title": {"Статистика", "Statistics"},
	"statistics.about": {
		"Скільки активів у реєстрі: за станом, областю, видом майна та місяцем оприлюднення.",
		"How many assets the registry has: by state, region, kind of property and month of publication.",
	},
	"statistics.total":             {"Активів у реєстрі", "Assets in the registry"},
	"statistics.by.status":         {"За станом", "By state"},
	"statistics.by.region":         {"За областю", "By region"},
	"statistics.by.classification": {"За видом майна", "By kind of property"},
	"statistics.by.custodian":      {"За балансоутримувачем", "By custodian"},
	"statistics.by.month_kyiv":     {"За місяцем оприлюднення", "By month of publication"},
	"statistics.value":             {"Значення", "Value"},
	"statistics.count":             {"Активів", "Assets"},
	"statistics.bar":               {"Частка", "Share"},
	"statistics.table":             {"Числа таблицею", "The figures as a table"},
	"statistics.empty":             {"Ще немає даних.", "There are no data yet."},
	"statistics.more":              {"Показано найбільші.", "The largest ones are shown."},
	"statistics.data": {
		"Усі дані відкриті: їх можна отримати через API або скопіювати цілком.",
		"All data are open: read them through the API, or copy them as a whole.",
	},

	"about.title": {"Про реєстр", "About the registry"},
	"about.about": {
		"Як читати реєстр програмно, тримати його копію та перевіряти публічний журнал.",
		"How to read the registry with a program, keep a copy of it, and verify the public log.",
	},
	"about.what": {
		"Реєстр містить активи, які готують до приватизації. Записи створюють і змінюють оператори, " +
			"читати їх може будь-хто без реєстрації.",
		"The registry has assets on their way to privatisation. Brokers create and change the records. " +
			"Anyone reads them, without an account.",
	},
	"about.states": {"Стани активу", "States of an asset"},
	"about.state.pending": {
		"Запис оприлюднено, його ще можуть уточнювати.",
		"The record is published and may still be corrected.",
	},
	"about.state.verification": {
		"Запис перевіряють, змінити його не можна.",
		"The record is being verified and cannot be changed.",
	},
	"about.state.active": {
		"Запис перевірено, актив увійшов до лота.",
		"The record is verified, and the asset is part of a lot.",
	},
	"about.state.complete": {
		"Процес завершено, запис більше не змінюється.",
		"The process is over, and the record does not change any more.",
	},
	"about.state.deleted": {
		"Актив знято з реєстру з підставою в документах. Пошук його не показує.",
		"The asset was removed, for a reason in its documents. The search leaves it out.",
	},
	"about.api": {"API", "API"},
	"about.api.text": {
		"Усе, що показує цей сайт, доступне програмам у форматі JSON, без ключа:",
		"Programs read all that this site shows as JSON, without a key:",
	},
	"about.api.docs":         {"Посібники й довідник API", "Guides and the reference of the API"},
	"docs.path":              {"/docs/uk", "/docs"},
	"about.api.search":       {"Пошук", "Search"},
	"about.api.list":         {"Стрічка змін усіх активів", "The feed of all assets"},
	"about.api.copy":         {"Знімок усіх активів для копій", "The snapshot of all assets, for copies"},
	"about.api.dictionaries": {"Довідники: назви значень і кодів", "Dictionaries: names of values and codes"},
	"about.mirrors":          {"Копії", "Copies"},
	"about.mirrors.text": {
		"Кожен може тримати повну копію реєстру й роздавати її. Копія звіряє себе з публічним журналом:",
		"Anyone may keep a full copy of the registry and serve it. A copy compares itself with the " +
			"public log:",
	},
	"about.log": {"Публічний журнал", "The public log"},
	"about.log.text": {
		"Журнал має всі зміни оприлюднених записів. Він підписаний, і до нього можна лише додавати: " +
			"ніхто, навіть адміністратор, не може непомітно змінити, пересунути в часі чи вилучити зміну.",
		"The log has each change of a published record. It is signed and append-only: nobody, an " +
			"administrator included, can alter, back-date or drop a change unseen.",
	},
	"about.log.now":   {"Найновіша контрольна точка", "The newest checkpoint"},
	"about.log.key":   {"Відкритий ключ журналу", "Public key of the log"},
	"about.log.check": {"Команда перевіряє весь журнал:", "This command verifies the whole log:"},
	"data.title":      {"Відкриті дані", "Open data"},
	"data.about": {"Усі опубліковані активи одним файлом: CSV, рядки JSON і GeoJSON.",
		"All published assets in one file: CSV, lines of JSON and GeoJSON."},
	"data.lead": {"Усі опубліковані активи одним файлом. Адреси файлів не змінюються, а самі файли оновлюються.",
		"All published assets in one file. The addresses of the files stay, and the files are renewed."},
	"data.at":                   {"Стан реєстру на", "The registry as of"},
	"data.rows":                 {"рядків", "rows"},
	"data.schema":               {"опис полів", "description of the fields"},
	"data.file.assets.csv":      {"Таблиця активів", "Table of assets"},
	"data.file.items.csv":       {"Таблиця об’єктів у складі активів", "Table of the items of assets"},
	"data.file.documents.csv":   {"Таблиця документів активів", "Table of the documents of assets"},
	"data.file.assets.jsonl.gz": {"Повні записи, рядок JSON на актив", "Whole records, a line of JSON for each asset"},
	"data.file.assets.geojson":  {"Активи з координатами, для карт", "Assets with coordinates, for maps"},
	"data.formulas": {"У таблицях перед знаком, з якого могла б початися формула, стоїть апостроф. Рядки JSON точні.",
		"In tables an apostrophe stands before a sign that could begin a formula. Lines of JSON are exact."},
	"data.none": {"Цей реєстр не має цілих копій. Шукайте, або завантажте знайдене.",
		"This registry has no whole copies. Search, or download what you find."},
	"data.licence":      {"Ліцензія", "Licence"},
	"data.licence.none": {"Реєстр не назвав ліцензії.", "The registry names no licence."},
	"data.publisher":    {"Видавець", "Publisher"},
	"data.programs":     {"Для програм", "For programs"},
	"data.programs.text": {"Каталог (DCAT-AP) має адреси, дати, розміри й контрольні суми:",
		"The catalogue (DCAT-AP) has addresses, dates, sizes and checksums:"},
	"about.data": {"Усі активи одним файлом: відкриті дані", "All assets in one file: open data"},
	"about.use":  {"Доступність і дані", "Accessibility and data"},
	"about.use.text": {
		"Сайт працює без скриптів, з клавіатури та з програмами екранного читання. Він не має реклами, " +
			"лічильників і файлів cookie, і не звертається до інших сайтів.",
		"The site works without script, by keyboard and with screen readers. It has no advertisements, " +
			"no trackers and no cookies, and it asks no other site.",
	},

	"problem.internal": {"Сталася помилка", "Something went wrong"},
	"problem.internal.text": {
		"Сторінку не вдалося створити. Спробуйте ще раз.",
		"The page could not be made. Try again.",
	},
	"problem.missing": {"Сторінку не знайдено", "Page not found"},
	"problem.missing.text": {
		"Такої сторінки чи такого активу немає. Перевірте адресу або скористайтеся пошуком.",
		"There is no such page or asset. Check the address, or use the search.",
	},
	"problem.invalid": {"Запит містить помилки", "The request has mistakes"},
	"problem.invalid.text": {
		"Виправте адресу або почніть із пошуку.",
		"Correct the address, or begin with the search.",
	},
	"problem.busy": {"Сервіс тимчасово недоступний", "The service is not available just now"},
	"problem.busy.text": {
		"Забагато запитів, або реєстр не відповідає. Спробуйте за хвилину.",
		"There are too many requests, or the registry does not answer. Try again in a minute.",
	},
	"problem.large":      {"Запис завеликий для сторінки", "The record is too large for a page"},
	"problem.large.text": {"Повний запис доступний через API.", "The API has the whole record."},
	"problem.home":       {"До пошуку", "To the search"},
})

// withFilters adds the names of the filters.
func withFilters(texts map[string]text) map[string]text {
	for _, f := range assetfilter.All {
		texts["filter."+string(f.Name)] = text{f.Uk, f.En}
	}
	return texts
}

// nouns has the nouns that follow a number; the keys are their names.
var nouns = map[string]noun{
	"asset":  {forms{"актив", "активи", "активів"}, forms{"asset", "", "assets"}},
	"day":    {forms{"день", "дні", "днів"}, forms{"day", "", "days"}},
	"hour":   {forms{"година", "години", "годин"}, forms{"hour", "", "hours"}},
	"minute": {forms{"хвилина", "хвилини", "хвилин"}, forms{"minute", "", "minutes"}},
	"item":   {forms{"складова", "складові", "складових"}, forms{"item", "", "items"}},
	"byte":   {forms{"байт", "байти", "байтів"}, forms{"byte", "", "bytes"}},
	"edit":   {forms{"відмінність", "відмінності", "відмінностей"}, forms{"difference", "", "differences"}},
}
