/** Subject, text and HTML of a mail, by the two template files. Every value is text: in HTML it is escaped. */
import { readFileSync } from 'node:fs'
import type { Locale } from '../../schemas/accounts/people.ts'
import type { DueDelivery } from '../../schemas/notifications/delivery.ts'
import { TEST_EVENT } from '../../schemas/notifications/event.ts'
import { escapeHtml } from '../core/html-text.ts'
import { cutText } from '../core/json/cut.ts'
import { EN } from './words/en.ts'
import type { Words } from './words/words.ts'
import { ZH } from './words/zh.ts'

const readTemplate = (name: string): string =>
  readFileSync(new URL(`./templates/${name}`, import.meta.url), 'utf8')
const TEXT = readTemplate('mail.txt')
const HTML = readTemplate('mail.html')

const WORDS: Readonly<Record<Locale, Words>> = { en: EN, zh: ZH }
const MAX_VALUE_CHARS = 500

/** A value is one line: none makes a header, or a line that looks like ours. */
const toOneLine = (value: unknown): string =>
  cutText(String(value).replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' '), MAX_VALUE_CHARS)

type Values = Readonly<Record<string, string>>

const fill = (text: string, values: Values): string =>
  text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole)

interface Content {
  readonly subject: string
  readonly text: string
  readonly footer: string
  readonly facts: readonly { readonly name: string; readonly value: string }[]
  readonly button: string
  readonly link: string | null
}

export type MailContent = Pick<DueDelivery, 'event' | 'mail' | 'locale' | 'accountName'>

function makeContent({ event, mail, locale, accountName }: MailContent, consoleUrl: string): Content {
  if (mail !== null) {
    const { service, footer } = WORDS[mail.locale]
    const { subject, text, button } = service[mail.mail]
    const values = Object.fromEntries(
      Object.entries(mail.values).map(([name, value]) => [name, toOneLine(value)]),
    )
    const filled = { subject: fill(subject, values), text: fill(text, values) }
    return { ...filled, footer: footer.service, facts: [], button, link: mail.link }
  }
  if (event === null || event.type === TEST_EVENT) throw new Error('there is nothing to say')
  const words = WORDS[locale]
  const given = Object.entries(event.data).filter(([, value]) => value !== null && typeof value !== 'object')
  const shown: [string, string][] = given.map(([name, value]) => [name, toOneLine(value)])
  const values = { ...Object.fromEntries(shown), account: toOneLine(accountName ?? event.accountId) }
  const { subject, text } = words.event[event.type]
  return {
    subject: fill(subject, values),
    text: fill(text, values),
    footer: words.footer.event,
    facts: shown.map(([name, value]) => ({ name: name.replaceAll('_', ' '), value })),
    button: words.open,
    link: consoleUrl,
  }
}

const SECTION = /\{\{#(\w+)\}\}\n([\s\S]*?)\{\{\/\1\}\}\n/g

/** Fills a template: `{{name}}` is a value, `{{#name}}` to `{{/name}}` comes once for each fact, or for a link. */
function fillIn(text: string, content: Content, lang: Locale, escaped: (text: string) => string): string {
  const { subject, facts, link, ...rest } = content
  const common: Values = {
    heading: subject,
    lang,
    link: link ?? '',
    text: rest.text,
    button: rest.button,
    footer: rest.footer,
  }
  const put = (part: string, values: Values) =>
    part.replace(/\{\{(\w+)\}\}/g, (_, name: string) => escaped(values[name] ?? ''))
  const parts: string[] = []
  let end = 0
  for (const { 0: whole, 1: name, 2: inner = '', index } of text.matchAll(SECTION)) {
    parts.push(put(text.slice(end, index), common))
    if (name === 'facts') parts.push(...facts.map((fact) => put(inner, { ...fact })))
    else if (link !== null) parts.push(put(inner, common))
    end = index + whole.length
  }
  return [...parts, put(text.slice(end), common)].join('')
}

interface RenderedMail {
  readonly subject: string
  readonly text: string
  readonly html: string
}

/** @param consoleUrl the address of the console, to which events lead */
export function renderMail(delivery: MailContent, consoleUrl: string): RenderedMail {
  const content = makeContent(delivery, consoleUrl)
  const lang = delivery.mail?.locale ?? delivery.locale
  return {
    subject: content.subject,
    text: fillIn(TEXT, content, lang, (text) => text),
    html: fillIn(HTML, content, lang, escapeHtml),
  }
}
