package assetfields

// Document is a version of a document (docs/contract.md, "Document"). The service ignores documents that a client
// sends within an asset, because documents have separate paths.
var Document = Object{Name: "Document",
	About: "A document of an asset. The registry stores its address, not the file.", Fields: []Field{
		{Name: "id", Kind: "reference", Is: Given | Ours, Column: 1, About: "Id of the document. All versions share it.",
			Example: "1f0e2d3c4b5a49688796a5b4c3d2e1f0"},
		{Name: "documentType", Kind: "document type", Is: Required, Column: 2, Uk: "Вид документа", En: "Kind of document",
			About: "Type of the document.", Example: "technicalSpecifications"},
		{Name: "title", Kind: "line", Is: Translated | Required, Column: 3, Search: Own, About: "Title.",
			Example: "Технічний паспорт"},
		{Name: "description", Kind: "prose", Is: Translated, Column: 4, About: "Description.", Example: "Скан-копія"},
		{Name: "format", Kind: "media type", Column: 5, Uk: "Формат", En: "Format", About: "Media type of the file.",
			Example: "application/pdf"},
		{Name: "url", Kind: "document address", Column: 6, Uk: "Посилання", En: "Link",
			About:   "Address of the file. Required, except for x_dgfAssetFamiliarization, which refuses it.",
			Example: "https://docs.example.org/get/9f1c"},
		{Name: "hash", Kind: "digest", Column: 7, Uk: "Контрольна сума", En: "Hash", About: "Hash of the file.",
			Example: "md5:900150983cd24fb0d6963f7d28e17f72"},
		{Name: "sha256", Kind: "code", Is: Ours, Since: "2.5", Column: 8, Uk: "Контрольна сума SHA-256", En: "SHA-256 sum",
			Shown:   "code",
			About:   "SHA-256 of the file, 64 hexadecimal digits. The registry sets it for a file that it keeps.",
			Example: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{Name: "size", Kind: Integer, Is: Ours, Since: "2.5", Column: 9, Uk: "Розмір", En: "Size", Shown: "bytes",
			About: "Bytes of the file. The registry sets it for a file that it keeps.", Example: 3},
		{Name: "accessDetails", Kind: "prose", Column: 10, Uk: "Порядок ознайомлення", En: "How to see it",
			About: "How to see the asset. Required for x_dgfAssetFamiliarization.", Example: "За попереднім записом"},
		{Name: "language", Kind: "code", Column: 11, Uk: "Мова", En: "Language", About: "Language of the file.",
			Example: "uk"},
		{Name: "index", Kind: Integer, Uk: "Порядковий номер", En: "Index", About: "Place in a list.", Example: 1},
		{Name: "documentOf", Kind: Choice, Choices: []string{"asset", "item"}, Default: "asset", Column: 12,
			Uk: "Документ щодо", En: "Document about", About: "Object that the document belongs to.", Example: "asset"},
		{Name: "relatedItem", Kind: "reference", Column: 13, About: "Id of the object that the document belongs to.",
			Example: "7c9e6679742540de944be07fc1f90ae7"},
		{Name: "author", Kind: "code", Is: Ours, Column: 14, Uk: "Автор", En: "Author", Shown: "word",
			About:   "asset_owner, except for the document that the registry adds to each new asset.",
			Example: "asset_owner"},
		{Name: "datePublished", Kind: "timestamp", Is: Given | Ours, Column: 15, Uk: "Оприлюднено", En: "Published",
			About: "Time of the first version.", Example: "2026-11-22T00:32:46.881553+00:00"},
		{Name: "dateModified", Kind: "timestamp", Is: Given | Ours, Column: 16, About: "Time of this version.",
			Example: "2026-11-22T00:32:46.881553+00:00"},
	}}

// Organisation is the custodian (docs/contract.md, "Organisation").
var Organisation = Object{Name: "Organization",
	About: "Organisation that administers an asset.", Fields: []Field{
		{Name: "name", Kind: "line", Is: Translated | Required, Column: 1, Search: All, About: "Name.",
			Example: "Фонд державного майна"},
		{Name: "kind", Kind: Choice, Choices: []string{"general", "special", "other"}, Uk: "Вид організації",
			En: "Kind of organisation", About: "Kind of the organisation.", Example: "general"},
		{Name: "identifier", Of: &Identifier, Is: Required, Column: 2, Search: Own, Uk: "Код організації",
			En: "Identifier of the organisation", About: "Main identifier."},
		{Name: "additionalIdentifiers", Of: &Identifier, Is: List, Uk: "Додаткові коди", En: "Additional identifiers",
			About: "Further identifiers."},
		{Name: "additionalContactPoints", Of: &Contact, Is: List, Since: "2.5", Group: Contacts, Uk: "Інші контакти",
			En: "Other contacts", About: "Further contacts."},
		{Name: "address", Of: &Address, Is: Required, Search: Own, About: "Address."},
		{Name: "contactPoint", Of: &Contact, Is: Required, Group: Contacts, Column: 3, Uk: "Контактна особа",
			En: "Contact", About: "Main contact."},
	}}

// Holder is Organisation with an optional address and contact point.
var Holder = Object{Name: "Organization", Title: "Holder",
	About: "Organisation that holds an asset. Its address and its contact are optional.", Fields: []Field{
		{Name: "name", Kind: "line", Is: Translated | Required, Column: 1, Search: All, About: "Name.",
			Example: "Державне підприємство"},
		{Name: "kind", Kind: Choice, Choices: []string{"general", "special", "other"}, About: "Kind of the organisation.",
			Example: "general"},
		{Name: "identifier", Of: &Identifier, Is: Required, Column: 2, Search: Own, About: "Main identifier."},
		{Name: "additionalIdentifiers", Of: &Identifier, Is: List, About: "Further identifiers."},
		{Name: "additionalContactPoints", Of: &Contact, Is: List, Since: "2.5", Group: Contacts,
			About: "Further contacts."},
		{Name: "address", Of: &Address, Search: Own, About: "Address."},
		{Name: "contactPoint", Of: &Contact, Group: Contacts, Column: 3, About: "Main contact."},
	}}

// Identifier names an organisation in a register.
var Identifier = Object{Name: "Identifier",
	About: "Identifier of an organisation in a public register.", Fields: []Field{
		{Name: "scheme", Kind: "identifier scheme", Is: Required, Column: 1,
			About: "Register, as in the IATI list of organisation registration agencies.", Example: "UA-EDR"},
		{Name: "id", Kind: IdentifierID, Is: Required, Column: 2, Search: Own,
			About:   "Number in the register, a string or an integer of at most 15 digits. It comes back as sent.",
			Example: "00032945"},
		{Name: "legalName", Kind: "line", Is: Translated, Search: Own, Uk: "Юридична назва", En: "Legal name",
			About: "Name in the register.", Example: "Фонд державного майна України"},
		{Name: "uri", Kind: "web address", About: "Address of the entry in the register.",
			Example: "https://example.org/register/00032945"},
	}}

// Contact is a person or an office.
var Contact = Object{Name: "ContactPoint",
	About: "Contact of an organisation. It has an email address, a telephone number, or both.", Fields: []Field{
		{Name: "name", Kind: "line", Is: Translated | Required, About: "Name.", Example: "Реєстратор"},
		{Name: "email", Kind: "email address", Column: 1, Uk: "Електронна пошта", En: "Email", About: "Email address.",
			Example: "office@example.org"},
		{Name: "telephone", Kind: "code", Column: 2, Uk: "Телефон", En: "Telephone", Shown: "telephone",
			About: "Telephone number.", Example: "+380440000000"},
		{Name: "faxNumber", Kind: "code", Uk: "Факс", En: "Fax", About: "Fax number.", Example: "+380440000001"},
		{Name: "url", Kind: "web address", About: "Address of a web page.", Example: "https://example.org"},
	}}

// Period is a rectification period (docs/contract.md, "Rectification period").
var Period = Object{Name: "Period",
	About: "Time between two moments. The start is not after the end.", Fields: []Field{
		{Name: "startDate", Kind: "timestamp", Column: 1, Uk: "Початок", En: "Start", About: "Start.",
			Example: "2026-11-22T00:32:46.881553+00:00"},
		{Name: "endDate", Kind: "timestamp", Uk: "Кінець", En: "End", About: "End.",
			Example: "2026-12-22T00:32:46.881553+00:00"},
	}}

// RelatedProcess is the sale of an asset (docs/contract.md, "Related process").
var RelatedProcess = Object{Name: "RelatedProcess", About: "Process that sells an asset.", Fields: []Field{
	{Name: "id", Kind: ServerID, About: "Id of the related process. The registry chooses it.",
		Example: "3d2c1b0a9f8e4d7c6b5a4938271605f4"},
	{Name: "type", Kind: Choice, Choices: []string{"asset", "auction", "lot"}, Uk: "Вид процесу",
		En: "Kind of process", About: "Type of the process.", Example: "lot"},
	{Name: "relatedProcessID", Kind: "reference", Is: Required, Search: Own, Uk: "Номер процесу",
		En: "Number of the process", About: "Id of the process.", Example: "9e8d7c6b5a4f43218765f0e1d2c3b4a5"},
	{Name: "identifier", Kind: "code", Is: Renamed, Search: Own, Uk: "Номер у системі торгів",
		En: "Number in the system of sales", About: "Readable number of the process.", Example: "UA-LR-2026-11-22-000001"},
	{Name: "parentID", Kind: "code", Uk: "Номер батьківського процесу", En: "Number of the parent process",
		About: "Id of the process above.", Example: "17"},
}}

// Access is in the answer to a creation (docs/contract.md, "Create"). Clients cannot write it.
var Access = Object{Name: "Access",
	About: "Secrets of a new object. The registry shows them once and keeps their hashes only.", Fields: []Field{
		{Name: "token", Kind: "secret", Is: Given, About: "Owner token. It goes with each change by the owner.",
			Example: "61c5dfe0a6f7471e8a1d7d44f0fd3a10"},
		{Name: "transfer", Kind: "secret", Is: Given, Since: "2.5",
			About: "Transfer token. Whoever has it may take the asset over.", Example: "0f2e4d6c8b0a49189f7e5d3c1b2a4f68"},
	}}

// Ownership is the body with which a broker takes over an asset (docs/contract.md, "Ownership").
var Ownership = Object{Name: "Ownership", About: "The request to take over an asset.", Fields: []Field{
	{Name: "id", Kind: "code", Is: Required, About: "Id of a transfer that the caller made.",
		Example: "4c3b2a1908f74e6d5c4b3a2918070605"},
	{Name: "transfer", Kind: "secret", Is: Required, About: "Transfer token of the asset.",
		Example: "0f2e4d6c8b0a49189f7e5d3c1b2a4f68"},
}}

// Recovery is the body with which an administrator gives an asset new tokens (docs/contract.md, "Recovery").
var Recovery = Object{Name: "Recovery", About: "The request to give an asset new tokens.", Fields: []Field{
	{Name: "reason", Kind: "reason", Is: Required, About: "Why. Only the audit log keeps it.",
		Example: "The owner lost the answer to the creation."},
}}

// Transfer is a transfer as clients send it back (docs/contract.md, "Transfers").
var Transfer = Object{Name: "Transfer",
	About: "A transfer as clients send it back. All fields are ignored.", Fields: []Field{
		{Name: "id", Kind: "text", Is: Dropped, About: "Ignored."},
		{Name: "date", Kind: "text", Is: Dropped, About: "Ignored."},
		{Name: "usedFor", Kind: "text", Is: Dropped, About: "Ignored."},
	}}
