/** The dialects of pictures, films, music and voices. Adding one is adding its file and its line here. */

import type { Dialect } from '../dialect.ts'
import { arkImages } from './ark/images.ts'
import { arkVideo } from './ark/video.ts'
import { elevenlabs } from './elevenlabs.ts'
import { files } from './files.ts'
import { openaiImages } from './openai/images.ts'
import { openaiSpeech } from './openai/speech.ts'
import { suno } from './suno.ts'
import { task } from './task/dialect.ts'

export const MEDIA_DIALECTS: readonly Dialect[] = [
  files,
  task,
  openaiImages,
  arkImages,
  arkVideo,
  suno,
  openaiSpeech,
  elevenlabs,
]
