/** Sorts the parts of a video job by their use, for upstreams with a field for each. */
import type { FileRef, JobOf } from '../../../schemas/media/job.ts'

export interface VideoParts {
  /** Empty without words. */
  readonly prompt: string
  readonly firstFrame: FileRef | null
  readonly lastFrame: FileRef | null
  /** Images that show what shall be in the video. */
  readonly references: readonly FileRef[]
  readonly videos: readonly FileRef[]
}

const LAST = /last|end|tail/i
const REFERENCE = /reference|subject|character/i

/** The first image without a role is the first frame; further ones are references. */
export function sortVideoParts({ content }: Pick<JobOf<'video'>, 'content'>): VideoParts {
  const texts = content.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  const images = content.flatMap((part) => (part.type === 'image' ? [part] : []))
  const last = images.find(({ role }) => role !== null && LAST.test(role))
  const first = images.find(
    (each) => each !== last && !(each.role !== null && (REFERENCE.test(each.role) || LAST.test(each.role))),
  )
  return {
    prompt: texts.join('\n'),
    firstFrame: first?.file ?? null,
    lastFrame: last?.file ?? null,
    references: images.filter((each) => each !== first && each !== last).map(({ file }) => file),
    videos: content.flatMap((part) => (part.type === 'video' ? [part.file] : [])),
  }
}
