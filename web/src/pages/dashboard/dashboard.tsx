/** The dashboard of a profile of operations that a program wrote: the page that `operations` makes, with no timeline behind it. */

import { Document } from "../../document/document";
import { Downloads, pageFormats } from "../../document/downloads";
import type { PageDocument } from "../../generated/catalogue";
import { dashboardOf } from "../../workspace/dropped";

interface Props {
  readonly what: string;
  /** The profile; none of the demo. */
  readonly file: File | undefined;
  readonly document: PageDocument;
}

/** No row of a profile is a place in a timeline. */
const NOWHERE = { go: () => {}, href: () => undefined };

export function View({ what, file, document }: Props) {
  return (
    <section class="analysis dashboard" aria-label={`Profile ${what}`}>
      <div class="title">
        <h2>
          {document.page.title}: {what}
        </h2>
        {file && <Downloads formats={pageFormats("operations", "operations.json")} enabled of={(format) => dashboardOf(file, format)} />}
      </div>
      <p class="faint">{document.page.about}</p>
      <Document document={document} guide={NOWHERE} />
    </section>
  );
}
