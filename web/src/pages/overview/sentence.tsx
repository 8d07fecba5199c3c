/** A sentence of an analysis, with its names of things as code. */

import { Fragment } from "preact";

/** Names of things stand between backticks. */
const NAME = /`([^`]+)`/;

export function Sentence({ text }: { text: string }) {
  return <>{text.split(NAME).map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : <Fragment key={at}>{part}</Fragment>))}</>;
}
