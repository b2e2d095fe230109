/** Finds the model that a refused request names, for the call log, without parsing the whole request. */
import { cutText } from '../../core/json/cut.ts'
import { readFacts } from '../answer/place-read.ts'
import { object, text } from '../answer/places.ts'

/** No model of the catalog has a longer name. */
export const REFUSED_MODEL_MAX_CHARS = 200
/** Of a body, its beginning and its end are read. */
const READ_BYTES = 2048
/** The last fields of an object, of which `model` is the first: some clients write it behind a long conversation. */
const LAST_FIELDS =
  /,\s*"model"\s*:\s*("(?:[^"\\]|\\.)*")\s*(?:,\s*"\w+"\s*:\s*(?:"[^"\\]*"|[\w.+-]+)\s*)*\}\s*$/

const IS_OBJECT = /^\s*\{/
const MODEL = object({ model: text((facts, model) => (facts.model = `"${model}"`)) })

function findAtBeginning(body: Buffer): string | undefined {
  const head = body.subarray(0, READ_BYTES)
  return IS_OBJECT.test(head.toString('latin1')) ? readFacts(head, MODEL).model : undefined
}

const findAtEnd = (body: Buffer): string | undefined =>
  LAST_FIELDS.exec(body.subarray(-READ_BYTES).toString('utf8'))?.[1]

/** Returns the empty string when it is unknown. */
export function readRefusedModel(body: Buffer): string {
  try {
    const name: unknown = JSON.parse(findAtBeginning(body) ?? findAtEnd(body) ?? 'null')
    return typeof name === 'string' ? cutText(name, REFUSED_MODEL_MAX_CHARS) : ''
  } catch {
    return ''
  }
}
