/** Images, files and audio that a request gives by URL: what their tokens are, only the upstream learns. */
import { isObject } from '../loose.ts'

export type LinkedParts = Readonly<Record<'image' | 'file' | 'audio', number>>
export const NO_LINKS: LinkedParts = { image: 0, file: 0, audio: 0 }

/** Names under which links of the chat-completions and responses protocols can be: a body with one is read whole. */
export const LINK_FIELDS = ['image_url', 'file_url', 'video_url', 'audio_url', 'file'] as const

/** What the client's own data is under: upstreams follow no link in it. */
const OPAQUE: ReadonlySet<string> = new Set(['input', 'arguments', 'text', 'metadata', 'annotations'])
/** What an earlier search found: the upstream reads its text, and follows no link of it. */
const FOUND = /_(search|fetch)_result$/
const INLINE = /^\s*data:/i
const LINK = /^\s*[a-z][a-z0-9+.-]*:\/\//i

type Kind = keyof LinkedParts
const KINDS: Readonly<Record<string, Kind>> = {
  image_url: 'image',
  input_image: 'image',
  image: 'image',
  input_audio: 'audio',
  audio: 'audio',
  audio_url: 'audio',
}

/** Counts links in the parts of parsed messages, at any depth. */
export function linkedPartsIn(messages: unknown): LinkedParts {
  const found: Record<Kind, number> = { ...NO_LINKS }
  const look = (value: unknown, kind: Kind): void => {
    if (Array.isArray(value)) for (const item of value) look(item, kind)
    if (!isObject(value) || (typeof value.type === 'string' && FOUND.test(value.type))) return
    const own = typeof value.type === 'string' && Object.hasOwn(KINDS, value.type) ? KINDS[value.type]! : kind
    for (const [name, inner] of Object.entries(value)) {
      if (typeof inner !== 'string') {
        if (!OPAQUE.has(name)) look(inner, Object.hasOwn(KINDS, name) ? KINDS[name]! : own)
      } else if (name.endsWith('url') ? !INLINE.test(inner) : name === 'file_data' && LINK.test(inner))
        found[own]++
    }
  }
  for (const message of Array.isArray(messages) ? messages : [])
    if (isObject(message)) for (const field of ['content', 'output']) look(message[field], 'file')
  return found
}
