/** What the requests of all media adapters have in common. */
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import type { FileRef, MediaJob } from '../../../schemas/media/job.ts'
import { bearer, type HeaderFields } from '../channel.ts'
import type { FormPart, MediaRequest } from './adapter.ts'

/** The key as each upstream wants it; nearly all want a bearer. */
export type KeyHeader = (channel: ChannelEntry) => readonly [string, string]

const headersOf = (channel: ChannelEntry, key: KeyHeader, accept: string): HeaderFields => [
  key(channel),
  ['accept', accept],
  ['accept-encoding', 'identity'],
  ['user-agent', 'tollgate'],
  ...Object.entries(channel.headers).map(([name, value]) => [name.toLowerCase(), value] as const),
]

interface Options {
  readonly key?: KeyHeader
  readonly accept?: string
}

function build(
  channel: ChannelEntry,
  method: MediaRequest['method'],
  path: string,
  body: MediaRequest['body'],
  { key = bearer, accept = 'application/json' }: Options = {},
): MediaRequest {
  return { method, url: `${channel.base_url}${path}`, headers: headersOf(channel, key, accept), body }
}

export const getRequest = (channel: ChannelEntry, path: string, options?: Options): MediaRequest =>
  build(channel, 'GET', path, null, options)

export const bareRequest = (channel: ChannelEntry, method: 'POST' | 'DELETE', path: string): MediaRequest =>
  build(channel, method, path, null)

export const jsonRequest = (
  channel: ChannelEntry,
  path: string,
  value: unknown,
  options?: Options,
): MediaRequest => build(channel, 'POST', path, { type: 'json', value }, options)

export const formRequest = (
  channel: ChannelEntry,
  path: string,
  parts: readonly FormPart[],
  options?: Options,
): MediaRequest => build(channel, 'POST', path, { type: 'form', parts }, options)

/** A file as a part of a form. One that was never stored stays a link, which the upstream will refuse. */
export const filePart = (name: string, file: FileRef): FormPart =>
  file.from === 'url'
    ? { name, value: file.url }
    : { name, file: { key: file.key, mediaType: file.media_type, bytes: file.bytes, name: file.name } }

export const isLink = (file: FileRef): boolean => file.from === 'url'

/** One part of a path. Dots alone would lead out of the folder however they are written. */
export const pathPart = (text: string): string => (/^\.+$/.test(text) ? '-' : encodeURIComponent(text))

type Fields = Readonly<Record<string, unknown>>

/** Without fields that nobody asked for. */
export const definedFields = (fields: Fields): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined))

/** A job reached an adapter that does not do its work: routing was wrong. */
export function notServed(job: MediaJob): never {
  throw new Error(`no request for ${job.work}`)
}
