/** The dialects that the simulated provider speaks. To add one, add its file and its line here. */

import type { Dialect } from './dialect.ts'
import { arkImages } from './dialects/ark/images.ts'
import { arkVideo } from './dialects/ark/video.ts'
import { chatCompletions } from './dialects/chat-completions/dialect.ts'
import { elevenlabs } from './dialects/elevenlabs.ts'
import { files } from './dialects/files.ts'
import { generateContent } from './dialects/generate-content/dialect.ts'
import { messages } from './dialects/messages/dialect.ts'
import { openaiImages } from './dialects/openai/images.ts'
import { openaiSpeech } from './dialects/openai/speech.ts'
import { openaiTranscriptions } from './dialects/openai/transcriptions.ts'
import { vectors } from './dialects/openai/vectors.ts'
import { responses } from './dialects/responses/dialect.ts'
import { suno } from './dialects/suno.ts'
import { task } from './dialects/task/dialect.ts'
import { stripe } from './payments/api.ts'

export const MEDIA_DIALECTS: readonly Dialect[] = [
  files,
  task,
  openaiImages,
  arkImages,
  arkVideo,
  suno,
  openaiSpeech,
  openaiTranscriptions,
  elevenlabs,
]

export const DIALECTS: readonly Dialect[] = [
  chatCompletions,
  messages,
  generateContent,
  responses,
  vectors,
  ...MEDIA_DIALECTS,
  stripe,
]
