package assetfields

// Asset is the asset itself (docs/contract.md, "Asset").
var Asset = Object{Name: "Asset", About: "One object of state or municipal property.", Fields: []Field{
	{Name: "id", Kind: "code", Is: Given, Column: 1, Search: Own, Uk: "Ідентифікатор", En: "Identifier", Shown: "code",
		About: "Id of the asset. It never changes.", Example: "0a1b2c3d4e5f40718293a4b5c6d7e8f9"},
	{Name: "assetID", Kind: "code", Is: Given, Column: 2, Search: Own, Uk: "Номер у реєстрі",
		En: "Number in the registry", About: "Readable number of the asset. It never changes and is unique.",
		Example: "UA-AR-DGF-2026-11-22-000001"},
	{Name: "assetType", Kind: "asset type", Is: Required, By: AtCreation, Column: 3, Uk: "Тип активу",
		En: "Type of asset", About: "Type of the asset. The operator may add types to bounce.", Example: "bounce"},
	{Name: "status", Kind: "state", Is: Required | Keeps, By: AtCreation | ByOwner | ByConcierge | ByAdministrator,
		Column: 4, Uk: "Стан", En: "State", About: "State of the asset. See the guide to states.", Example: "draft"},
	{Name: "mode", Kind: "mode", Is: Keeps, By: AtCreation | ByAdministrator, Uk: "Режим", En: "Mode",
		About: "test marks a test asset. A real asset has no mode.", Example: "test"},
	{Name: "title", Kind: "line", Is: Translated | Required, By: AtCreation | ByOwner, Column: 5, ColumnEn: 6,
		Search: All, Uk: "Назва", En: "Title", About: "Title.", Example: "Нежитлове приміщення, 240 м²"},
	{Name: "description", Kind: "prose", Is: Translated | Required, By: AtCreation | ByOwner, Column: 7, Search: All,
		Uk: "Опис", En: "Description", About: "Description.", Example: "Перший поверх, окремий вхід"},
	{Name: "items", Of: &Item, Is: List, By: AtCreation | ByOwner, Column: 14, Search: Own, Uk: "Складові",
		En: "Items", About: "The things that the asset consists of. A published asset has at least one."},
	{Name: "decisions", Of: &Decision, Is: List, By: AtCreation | ByOwnerPublishing, Search: Own, Uk: "Рішення",
		En: "Decisions", About: "Decisions to privatise the asset. A published asset has at least one."},
	{Name: "documents", Of: &Document, Is: List, Column: 13, Search: Own, Uk: "Документи", En: "Documents",
		About: "Documents, all versions, in the order they came in. Use /assets/{id}/documents to change them."},
	{Name: "relatedProcesses", Of: &RelatedProcess, Is: List, By: AtCreation | ByOwner, Search: Own,
		Uk: "Пов’язані процеси", En: "Related processes",
		About: "The process that sells the asset. At most one, and an active asset has one of type lot."},
	{Name: "assetCustodian", Of: &Organisation, Is: Required, By: AtCreation | ByOwner, Column: 12, Search: Own,
		Uk: "Балансоутримувач", En: "Custodian", About: "The organisation that administers the asset."},
	{Name: "assetHolder", Of: &Holder, By: AtCreation | ByOwner, Search: Own, Uk: "Розпорядник", En: "Holder",
		About: "The organisation that holds the asset."},
	{Name: "owner", Kind: "code", Is: Given, Column: 8, Uk: "Оператор, який веде запис",
		En: "Broker that keeps the record", About: "Name of the broker that owns the asset.", Example: "broker"},
	{Name: "rectificationPeriod", Of: &Period, Is: Keeps, By: ByAdministrator, Since: "2.5", Column: 9,
		Uk: "Період уточнень", En: "Rectification period",
		About: "Time in which the asset may be corrected. The steps between states set it."},
	{Name: "sandboxParameters", Kind: "code", Is: SandboxOnly, By: AtCreation | ByOwner, Uk: "Параметри пісочниці",
		En: "Sandbox parameters", About: "Parameters for tests. Only a sandbox has this field.", Example: "quick"},
	{Name: "date", Kind: "timestamp", Is: Given, Column: 10, Uk: "Стан змінено", En: "State changed",
		About:   "Time of the creation, then of the last step between states.",
		Example: "2026-11-22T00:32:46.881553+00:00"},
	{Name: "dateModified", Kind: "timestamp", Is: Given, Column: 11, Uk: "Змінено", En: "Changed",
		About:   "Time of the last effective change. It is unique in the registry, and the asset's place in the feed.",
		Example: "2026-11-22T00:32:46.881553+00:00"},
	{Name: "owner_token", Kind: "secret", Is: Dropped | Unsuggested,
		About: "Ignored, so that a client may send back what it was given."},
	{Name: "transfer_token", Kind: "secret", Is: Dropped | Unsuggested,
		About: "Ignored, so that a client may send back what it was given."},
	{Name: "revisions", Kind: "anything", Is: Dropped | List | Unsuggested,
		About: "Ignored, so that a client may send back what it was given."},
}}

// Item is a thing that an asset consists of (docs/contract.md, "Item").
var Item = Object{Name: "Item", About: "One thing that an asset consists of.", Fields: []Field{
	{Name: "id", Kind: OwnID, Column: 1,
		About:   "Id of the item. The registry keeps 32 lowercase hexadecimal characters and replaces anything else.",
		Example: "7c9e6679742540de944be07fc1f90ae7"},
	{Name: "description", Kind: "prose", Is: Translated | Required, Column: 2, Search: All, About: "Description.",
		Example: "Приміщення"},
	{Name: "classification", Of: &Classification, Is: Required, Column: 3, Search: Own, Uk: "Класифікація",
		En: "Classification", About: "Main classification."},
	{Name: "additionalClassifications", Of: &AdditionalClassification, Is: List, Search: Own,
		Uk: "Додаткова класифікація", En: "Additional classification", About: "Further classifications."},
	{Name: "unit", Of: &Unit, Is: Required, Column: 5, Uk: "Одиниця виміру", En: "Unit",
		About: "Unit of the quantity."},
	{Name: "quantity", Kind: Quantity, Is: Required, Column: 4, Search: Own, Uk: "Кількість", En: "Quantity",
		About: "Exact decimal with up to 34 digits, rounded half up to four fraction digits. Do not read it as a " +
			"floating-point number, which would round it again.", Example: 240.5},
	{Name: "address", Of: &Address, Is: Required, Column: 6, Search: Own, Uk: "Адреса", En: "Address",
		About: "Address."},
	{Name: "location", Of: &Location, Group: Locations, Column: 7, Uk: "Координати", En: "Coordinates",
		About: "Coordinates."},
	{Name: "registrationDetails", Of: &Registration, Is: Required, Search: Own, Uk: "Державна реєстрація",
		En: "State registration", About: "State of the entry in the register of property rights."},
	{Name: "schema_properties", Kind: "disabled", Is: Dropped, About: "Must be empty.", Example: map[string]any{}},
}}

// Classification is the main class of an item.
var Classification = Object{Name: "Classification",
	About: "Class of an item in a public classification.", Fields: []Field{
		{Name: "scheme", Kind: "classification scheme", Default: "CAV-PS", Column: 1, Uk: "Класифікатор", En: "Scheme",
			About: "Name of the classification.", Example: "CAV-PS"},
		{Name: "id", Kind: "code", Is: Required, Column: 2, Search: Own,
			About: "Code in the classification. Codes of CAV-PS are in the list data/cav-ps.txt of the registry's " +
				"sources; codes of a division or group are too coarse. The operator may supply a list for CPV.",
			Example: "04121000-2"},
		{Name: "description", Kind: "prose", Is: Translated | Required, Column: 3, Search: All, About: "Name of the class.",
			Example: "Приміщення"},
		{Name: "uri", Kind: "web address", Uk: "Посилання", En: "Link", About: "Address of a description of the class.",
			Example: "https://example.org/classes/04121000-2"},
	}}

// AdditionalClassification is another class of an item.
var AdditionalClassification = Object{Name: "AdditionalClassification",
	About: "Class of an item in a further classification.", Fields: []Field{
		{Name: "scheme", Kind: "additional scheme", Default: "UA-EDR", About: "Name of the classification.",
			Example: "UA-EDR"},
		{Name: "id", Kind: "code", Is: Required, Search: Own,
			About: "Code in the classification. Its form depends on the scheme, as in " +
				"data/additional-classification-schemes.txt of the registry's sources. The operator may supply lists.",
			Example: "00032945"},
		{Name: "description", Kind: "prose", Is: Translated | Required, Search: All, About: "Name of the class.",
			Example: "Папір"},
		{Name: "uri", Kind: "web address", About: "Address of a description of the class.",
			Example: "https://example.org/classes/1"},
	}}

// Unit is the unit of a quantity.
var Unit = Object{Name: "Unit", About: "Unit of a quantity.", Fields: []Field{
	{Name: "code", Kind: "code", Is: Required, Column: 1, Uk: "Код одиниці", En: "Code of the unit", Shown: "unit",
		About: "Code of the unit, for example of UN/CEFACT recommendation 20.", Example: "MTK"},
	{Name: "name", Kind: "line", Is: Translated, Column: 2, Uk: "Найменування", En: "Name", About: "Name of the unit.",
		Example: "квадратний метр"},
}}

// Address is a postal address. It is also in organisations.
var Address = Object{Name: "Address", About: "Postal address.", Fields: []Field{
	{Name: "streetAddress", Kind: "line", Group: Addresses, Column: 3, Search: Own, Uk: "Вулиця, будинок",
		En: "Street and number", About: "Street and number.", Example: "вул. Банкова, 11"},
	{Name: "locality", Kind: "line", Column: 2, Search: Own, Uk: "Населений пункт", En: "Locality",
		About: "City or village.", Example: "Київ"},
	{Name: "region", Kind: "line", Column: 1, Search: Own, Uk: "Область", En: "Region", About: "Region.",
		Example: "м. Київ"},
	{Name: "postalCode", Kind: "code", Group: Addresses, Column: 4, Search: Own, Uk: "Поштовий індекс",
		En: "Postal code", About: "Postal code.", Example: "01220"},
	{Name: "countryName", Kind: "line", Is: Translated | Required, Search: Own, Uk: "Країна", En: "Country",
		About: "Country.", Example: "Україна"},
}}

// Location has coordinates exactly as the client sent them, because rounding would move the place.
var Location = Object{Name: "Location",
	About: "Coordinates of a place. The registry keeps them as sent and checks no ranges.", Fields: []Field{
		{Name: "latitude", Kind: Coordinate, Is: Required, Column: 1, Uk: "Широта", En: "Latitude",
			About: "Latitude in degrees.", Example: 50.4501},
		{Name: "longitude", Kind: Coordinate, Is: Required, Column: 2, Uk: "Довгота", En: "Longitude",
			About: "Longitude in degrees.", Example: 30.5234},
		{Name: "elevation", Kind: "height", Uk: "Висота", En: "Elevation", About: "Elevation above the sea.",
			Example: "170 m"},
	}}

// Registration is the entry of an item in the register of titles.
var Registration = Object{Name: "RegistrationDetails",
	About: "State of the entry in the register of property rights.", Fields: []Field{
		{Name: "status", Kind: Choice, Choices: []string{"unknown", "registering", "complete"}, Default: "unknown",
			About: "State of the registration.", Example: "complete"},
		{Name: "registrationID", Kind: "code", Search: Own, Uk: "Номер реєстрації", En: "Registration number",
			About: "Number of the entry. It goes with the status complete only.", Example: "1047632"},
		{Name: "registrationDate", Kind: "timestamp", Uk: "Дата реєстрації", En: "Registration date", Shown: "day",
			About:   "Date of the entry. It goes with the status complete only.",
			Example: "2026-11-20T12:00:00.000000+02:00"},
	}}

// Decision is a decision to sell (docs/contract.md, "Decision").
var Decision = Object{Name: "Decision", About: "Decision to privatise an asset.", Fields: []Field{
	{Name: "id", Kind: OwnID,
		About: "Id of the decision. The registry keeps 32 lowercase hexadecimal characters and replaces anything " +
			"else.", Example: "5a3b9c1d2e4f46718a9b0c1d2e3f4a5b"},
	{Name: "title", Kind: "line", Is: Translated, Search: Own, About: "Title.", Example: "Наказ про приватизацію"},
	{Name: "decisionDate", Kind: "timestamp", Is: Required, Uk: "Дата рішення", En: "Date of the decision",
		Shown: "day", About: "Date of the decision.", Example: "2026-11-20T12:00:00.000000+02:00"},
	{Name: "decisionID", Kind: "code", Is: Required, Search: Own, Uk: "Номер рішення", En: "Number of the decision",
		About: "Number of the decision.", Example: "1637-10"},
	{Name: "decisionOf", Kind: "text", Is: Dropped, Default: "asset", Uk: "Рішення щодо", En: "Decision about",
		Shown: "word", About: "Always asset.", Example: "asset"},
	{Name: "relatedItem", Kind: "text", Is: Dropped, Uk: "Стосується", En: "Related item", Shown: "code",
		About: "Accepted and dropped."},
}}
