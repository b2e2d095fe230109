/** Text into HTML, every value escaped. */
import { escapeHtml } from '../core/html-text.ts'

/** Text that is HTML already. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Value = string | number | Html | readonly Html[]

function printed(value: Value): string {
  if (value instanceof Html) return value.text
  if (typeof value === 'object') return value.map(({ text }) => text).join('')
  return escapeHtml(String(value))
}

export const html = (strings: TemplateStringsArray, ...values: readonly Value[]): Html =>
  new Html(strings.reduce((sum, part, index) => sum + printed(values[index - 1]!) + part))

export const NOTHING = new Html('')
