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
import type { RoutedPath } from './routed.ts'

export type AudioRouteDeps = MakeSpeechDeps &
  ReadMusicDeps &
  ReadSpeechDeps &
  ListVoicesDeps &
  DeleteRecordDeps &
  CancelDeps &
  DeleteFilesDeps &
  TranscriptDeps

export function audioRoutes(deps: AudioRouteDeps): readonly RoutedPath[] {
  return [
    {
      path: '/v1/music/generations',
      methods: { POST: { handler: makeMusic(deps) }, GET: { handler: listMusic(deps) } },
    },
    {
      path: '/v1/music/generations/{id}',
      methods: { GET: { handler: showMusic(deps) }, DELETE: { handler: cancelMusic(deps) } },
    },
    {
      path: '/v1/music/generations/{id}/files',
      methods: { DELETE: { handler: deleteFiles(deps, 'music') } },
    },
    {
      path: '/v1/audio/speech',
      methods: { POST: { handler: makeSpeech(deps) }, GET: { handler: listSpeech(deps) } },
    },
    {
      path: '/v1/audio/speech/{id}',
      methods: { GET: { handler: showSpeech(deps) }, DELETE: { handler: cancelSpeech(deps) } },
    },
    { path: '/v1/audio/speech/{id}/files', methods: { DELETE: { handler: deleteFiles(deps, 'speech') } } },
    {
      path: '/v1/audio/voices',
      methods: { POST: { handler: cloneVoice(deps) }, GET: { handler: listVoices(deps) } },
    },
    {
      path: '/v1/audio/voices/{id}',
      methods: { GET: { handler: showVoice(deps) }, DELETE: { handler: deleteVoice(deps) } },
    },
    { path: '/v1/transcripts/extract', methods: { POST: { handler: extractTranscript(deps) } } },
  ]
}
