/** Prints a whole response as the events of a stream, for an upstream that did not stream. */
import { Buffer } from 'node:buffer'
import { answerFields } from '../answer/content.ts'
import { type LooseObject, toFields, toList, toText } from '../loose.ts'

/** States in which a response ends, and names of its last event. */
const ENDS: ReadonlySet<unknown> = new Set(['completed', 'incomplete', 'failed'])
/** Texts that come in deltas, with the field that has them. */
const TEXTS: Readonly<Record<string, string>> = { output_text: 'text', refusal: 'refusal' }

class ResponsePrinter {
  out = ''
  #sequence = 0

  event(name: string, fields: LooseObject): void {
    const type = `response.${name}`
    const event = { type, sequence_number: this.#sequence++, ...fields }
    this.out += `event: ${type}\ndata: ${JSON.stringify(event)}\n\n`
  }

  item(item: LooseObject, index: number): void {
    const { type, content, arguments: args } = item
    const begun = { ...item, ...(item.status !== undefined && { status: 'in_progress' }) }
    const place = { output_index: index, item_id: item.id }
    if (type === 'message') {
      this.event('output_item.added', { output_index: index, item: { ...begun, content: [] } })
      for (const [at, part] of toList(content).entries())
        this.#part(toFields(part), { ...place, content_index: at })
    } else if (type === 'function_call') {
      this.event('output_item.added', { output_index: index, item: { ...begun, arguments: '' } })
      this.event('function_call_arguments.delta', { ...place, delta: args })
      this.event('function_call_arguments.done', { ...place, name: item.name, arguments: args })
    } else this.event('output_item.added', { output_index: index, item: begun })
    this.event('output_item.done', { output_index: index, item })
  }

  #part(part: LooseObject, place: LooseObject): void {
    const type = toText(part.type)
    const field = Object.hasOwn(TEXTS, type) ? TEXTS[type]! : null
    this.event('content_part.added', { ...place, part: field === null ? part : { ...part, [field]: '' } })
    if (field !== null) {
      this.event(`${type}.delta`, { ...place, delta: part[field] })
      this.event(`${type}.done`, { ...place, [field]: part[field] })
    }
    this.event('content_part.done', { ...place, part })
  }
}

export function responseAsStream(body: Buffer): Buffer {
  const response = answerFields(body) ?? {}
  const { status, output } = response
  const printer = new ResponsePrinter()
  printer.event('created', { response: { ...response, status: 'in_progress', output: [], usage: null } })
  for (const [index, item] of toList(output).entries()) printer.item(toFields(item), index)
  printer.event(ENDS.has(status) ? (status as string) : 'completed', { response })
  return Buffer.from(printer.out)
}
