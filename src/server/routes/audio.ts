/** Routes of music, speech, voices and transcripts. */

import { type MusicTaskDeps, makeMusic, musicTasks } from '../../../pipelines/media/audio/music.ts'
import {
  type MakeSpeechDeps,
  makeSpeech,
  type SpeechTaskDeps,
  speechTasks,
} from '../../../pipelines/media/audio/speech.ts'
import { extractTranscript, type TranscriptDeps } from '../../../pipelines/media/audio/transcripts.ts'
import {
  cloneVoice,
  deleteVoice,
  type ListVoicesDeps,
  listVoices,
  showVoice,
} from '../../../pipelines/media/audio/voices.ts'
import type { DeleteRecordDeps } from '../../../pipelines/media/delete-record.ts'
import { type DeleteFilesDeps, deleteFiles } from '../../../pipelines/media/files/delete-files.ts'
import type { RoutedPath } from './routed.ts'

export type AudioRouteDeps = MakeSpeechDeps &
  MusicTaskDeps &
  SpeechTaskDeps &
  ListVoicesDeps &
  DeleteRecordDeps &
  DeleteFilesDeps &
  TranscriptDeps

export function audioRoutes(deps: AudioRouteDeps): readonly RoutedPath[] {
  const music = musicTasks(deps)
  const speech = speechTasks(deps)
  return [
    {
      path: '/v1/music/generations',
      methods: { POST: { handler: makeMusic(deps) }, GET: { handler: music.list } },
    },
    {
      path: '/v1/music/generations/{id}',
      methods: { GET: { handler: music.show }, DELETE: { handler: music.cancel } },
    },
    {
      path: '/v1/music/generations/{id}/files',
      methods: { DELETE: { handler: deleteFiles(deps, 'music') } },
    },
    {
      path: '/v1/audio/speech',
      methods: { POST: { handler: makeSpeech(deps) }, GET: { handler: speech.list } },
    },
    {
      path: '/v1/audio/speech/{id}',
      methods: { GET: { handler: speech.show }, DELETE: { handler: speech.cancel } },
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
