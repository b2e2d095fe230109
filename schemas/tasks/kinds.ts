/** The kinds of tasks; without the schemas, which a page of the console does not load for a list. */
export const TASK_KINDS = [
  'image',
  'video',
  'music',
  'speech',
  'avatar',
  'voice',
  'transcript',
  'subtitle',
  'response',
] as const
