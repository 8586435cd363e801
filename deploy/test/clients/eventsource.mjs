// Follow the feed with an EventSource, of a browser or of a package.

/** follow reports the title of each entry up to last. It rejects if the source gives up, or if a report fails. */
export async function follow(EventSource, registry, control, last) {
  const source = new EventSource(`${registry}/api/2.5/assets?opt_fields=title`);
  let reports = Promise.resolve(); // in their order
  try {
    await new Promise((resolve, reject) => {
      source.onerror = () => {
        if (source.readyState === EventSource.CLOSED) reject(new Error("the source gave up"));
      };
      source.onmessage = ({ data, lastEventId }) => {
        const { title, dateModified } = JSON.parse(data);
        if (lastEventId !== dateModified) reject(new Error(`got the id ${lastEventId}, want ${dateModified}`));
        reports = reports.then(() =>
          fetch(`${control}/step`, { method: "POST", body: JSON.stringify({ Step: "live", Got: title }) }));
        reports.catch(reject);
        if (title === last) reports.then(resolve);
      };
    });
  } finally {
    source.close();
  }
}
