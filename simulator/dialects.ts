/** The dialects the simulated provider speaks. Adding one is adding its file and its line here, or among the media. */

import type { Dialect } from './dialect.ts'
import { chatCompletions } from './dialects/chat-completions/dialect.ts'
import { generateContent } from './dialects/generate-content/dialect.ts'
import { MEDIA_DIALECTS } from './dialects/media.ts'
import { messages } from './dialects/messages/dialect.ts'
import { responses } from './dialects/responses/dialect.ts'
import { stripe } from './payments/api.ts'

export const DIALECTS: readonly Dialect[] = [
  chatCompletions,
  messages,
  generateContent,
  responses,
  ...MEDIA_DIALECTS,
  stripe,
]
