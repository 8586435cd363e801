// The scenarios of the generated clients share these: the asset that they create, and the parts of requests.

/** asset returns a new asset. The quantity is sent as text, which keeps its digits. */
export function asset() {
  return {
    assetType: "bounce", title: "Hall", description: "one entrance",
    items: [{
      description: "Hall", classification: { scheme: "CAV-PS" as const, id: "04121000-2", description: "Hall" },
      unit: { code: "MTK" }, quantity: "240.50010", address: { countryName: "Україна" },
      location: { latitude: 50.4501, longitude: 30.5234 }, registrationDetails: { status: "unknown" as const },
    }],
    decisions: [{ decisionDate: "2026-11-20T12:00:00+02:00", decisionID: "1637-10" }],
    assetCustodian: {
      name: "Fund", identifier: { scheme: "UA-EDR" as const, id: "00032945" }, address: { countryName: "Україна" },
      contactPoint: { name: "Registrar", telephone: "+380440000000" },
    },
  };
}

export const document = {
  documentType: "illustration" as const, title: "Plan", url: "https://example.com/plan", format: "image/png",
};

/** registry is the address of the version of the API. */
export const registry = process.env["REGISTRY"] ?? "";

/** key returns the header with an API key. */
export function key(name: string): { Authorization: string } {
  return { Authorization: `Basic ${btoa(`${name}:`)}` };
}

/** must returns a value that is there. */
export function must<T>(value: T | undefined | null): T {
  if (value === undefined || value === null) throw new Error("an answer lacks a value");
  return value;
}

/** report prints the outcome. */
export function report(outcome: {
  Created: string; Stale: number; Published: string; Documents: number; Owner: string; Quantity: string;
  Followed: boolean;
}): void {
  console.log(JSON.stringify(outcome));
}
