/** Routes of music, speech, voices and transcripts. */

import {
  cancelMusic,
  listMusic,
  makeMusic,
  type ReadMusicDeps,
  showMusic,
} from '../../../pipelines/media/audio/music.ts'
import {
  cancelSpeech,
  listSpeech,
  type MakeSpeechDeps,
  makeSpeech,
  type ReadSpeechDeps,
  showSpeech,
} from '../../../pipelines/media/audio/speech.ts'
import { extractTranscript, type TranscriptDeps } from '../../../pipelines/media/audio/transcripts.ts'
import {
  cloneVoice,
  deleteVoice,
  type ListVoicesDeps,
  listVoices,
  showVoice,
} from '../../../pipelines/media/audio/voices.ts'
import type { CancelDeps } from '../../../pipelines/media/cancel-task.ts'
import type { DeleteRecordDeps } from '../../../pipelines/media/delete-record.ts'
import { type DeleteFilesDeps, deleteFiles } from '../../../pipelines/media/files/delete-files.ts'
import type { Answered, RoutedPath } from './routed.ts'

export type AudioRouteDeps = MakeSpeechDeps &
  ReadMusicDeps &
  ReadSpeechDeps &
  ListVoicesDeps &
  DeleteRecordDeps &
  CancelDeps &
  DeleteFilesDeps &
  TranscriptDeps

export function audioRoutes(deps: AudioRouteDeps, answered: Answered): readonly RoutedPath[] {
  return [
    {
      path: '/v1/music/generations',
      methods: { POST: { handler: makeMusic(deps) }, GET: answered(listMusic(deps)) },
    },
    {
      path: '/v1/music/generations/{id}',
      methods: { GET: answered(showMusic(deps)), DELETE: answered(cancelMusic(deps)) },
    },
    { path: '/v1/music/generations/{id}/files', methods: { DELETE: answered(deleteFiles(deps, 'music')) } },
    {
      path: '/v1/audio/speech',
      methods: { POST: { handler: makeSpeech(deps) }, GET: answered(listSpeech(deps)) },
    },
    {
      path: '/v1/audio/speech/{id}',
      methods: { GET: answered(showSpeech(deps)), DELETE: answered(cancelSpeech(deps)) },
    },
    { path: '/v1/audio/speech/{id}/files', methods: { DELETE: answered(deleteFiles(deps, 'speech')) } },
    {
      path: '/v1/audio/voices',
      methods: { POST: { handler: cloneVoice(deps) }, GET: answered(listVoices(deps)) },
    },
    {
      path: '/v1/audio/voices/{id}',
      methods: { GET: answered(showVoice(deps)), DELETE: answered(deleteVoice(deps)) },
    },
    { path: '/v1/transcripts/extract', methods: { POST: { handler: extractTranscript(deps) } } },
  ]
}
