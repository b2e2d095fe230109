/** Encodes jobs as the input of Tollgate's task contract. See docs/upstream-task.md, "Kinds". */
import { listFurtherFields } from '../../../../schemas/media/images.ts'
import type { FileRef, JobOf, MediaWork, VideoPart } from '../../../../schemas/media/job.ts'
import { omitUndefined } from '../request.ts'

type ResolveUrl = (file: FileRef) => string
type Input = Readonly<Record<string, unknown>>

const omitEmptyExtra = (extra: Input): Input | null => (Object.keys(extra).length === 0 ? null : extra)
const omitEmptyList = <Item>(items: readonly Item[]): readonly Item[] | null =>
  items.length === 0 ? null : items

const toInputPart = (part: VideoPart, resolveUrl: ResolveUrl): Input =>
  part.type === 'text'
    ? part
    : omitUndefined({ type: part.type, file: resolveUrl(part.file), role: part.role })

/** Returns the input, without fields that the request lacks. */
export function makeTaskInput(job: JobOf<MediaWork>, resolveUrl: ResolveUrl): Input {
  const { work: _, ...fields } = job
  const link = (file: FileRef | null): string | null => (file === null ? null : resolveUrl(file))
  switch (job.work) {
    case 'image':
    case 'image_edit':
      return omitUndefined({
        ...fields,
        images: omitEmptyList(job.images.map(resolveUrl)),
        mask: link(job.mask),
        extra: omitEmptyExtra(listFurtherFields(job.extra)),
      })
    case 'video': {
      const content = job.content.map((part) => toInputPart(part, resolveUrl))
      return omitUndefined({ ...fields, content })
    }
    case 'avatar_video':
    case 'voice':
      return omitUndefined({ ...fields, audio: link(job.audio) })
    case 'lipsync':
      return omitUndefined({
        ...fields,
        source_video: resolveUrl(job.source_video),
        audio: resolveUrl(job.audio),
      })
    case 'motion':
      return omitUndefined({
        ...fields,
        source_video: resolveUrl(job.source_video),
        portraits: job.portraits.map(resolveUrl),
      })
    case 'clip_compose': {
      const pictures = job.pip_config.map((item) => ({ ...item, media: resolveUrl(item.media) }))
      return omitUndefined({
        ...fields,
        video: resolveUrl(job.video),
        music: link(job.music),
        pip_config: omitEmptyList(pictures),
      })
    }
    case 'avatar':
      return omitUndefined({ ...fields, source: resolveUrl(job.source) })
    case 'subtitle':
      return omitUndefined({ ...fields, video: resolveUrl(job.video) })
    case 'music':
    case 'speech':
    case 'transcript':
      return omitUndefined(fields)
  }
}
