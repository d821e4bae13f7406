//! Digit maps with names: defined, changed, deleted, found (RFC 3525 7.1.14.1).

use super::super::error::*;
use super::watch::{LIST_MAX, MAPS_MAX, NamedMap};
use super::{Gateway, Room, Termination, text};
use crate::proto::codec::h248::{DigitMap, DigitMapDescriptor, EventDigitMap, Writer};
use crate::proto::endpoint::Blobs;

impl Gateway {
    fn map_place(&self, termination: Termination, name: &[u8]) -> Option<usize> {
        let mut room: Room = [0; LIST_MAX];
        self.events.maps.iter().position(|map| {
            map.termination == termination
                && usize::from(map.name) == name.len()
                && text(&self.calls.endpoints.blobs, map.text, &mut room)
                    .get(..name.len())
                    .is_some_and(|own| own.eq_ignore_ascii_case(name))
        })
    }

    /// The map that a name means on a termination: its own, else that of ROOT (DM-03).
    fn map_named(&self, termination: Termination, name: &[u8]) -> Option<&NamedMap> {
        let place = self.map_place(termination, name).or_else(|| self.map_place(Termination::Root, name))?;
        self.events.maps.get(place)
    }

    /// Blocks that a definition takes; or why there can be none.
    pub(super) fn check_map(&self, termination: Termination, given: &DigitMapDescriptor<'_>) -> Result<u32, Failure> {
        let name = given.name.filter(|name| *name != b"*").ok_or(MAP_WITHOUT_NAME)?;
        let known = self.map_place(termination, name);
        match &given.map {
            Some(map) if name.len() + map.source().len() >= LIST_MAX => Err(NO_MAP_LEFT),
            Some(_) if known.is_none() && self.events.maps.len() >= MAPS_MAX => Err(NO_MAP_LEFT),
            Some(map) => Ok(Blobs::blocks_for(name.len() + 1 + map.source().len())),
            None if known.is_none() => Err(MAP_UNKNOWN),
            None => Ok(0),
        }
    }

    /// Defines, changes or deletes a map (DM-01).
    pub(super) fn define_map(&mut self, termination: Termination, given: &DigitMapDescriptor<'_>) {
        let Some(name) = given.name else { return };
        let known = self.map_place(termination, name);
        if let (Some(place), true) = (known, given.map.is_some() || given.deleted) {
            let mut old = self.events.maps.swap_remove(place);
            self.calls.endpoints.blobs.free(&mut old.text);
        }
        let Some(map) = &given.map else { return };
        let mut room: Room = [0; LIST_MAX];
        let length = name.len() + 1 + map.source().len();
        let Some(place) = room.get_mut(..length) else { return };
        place[..name.len()].copy_from_slice(name);
        place[name.len()] = b' ';
        place[name.len() + 1..].copy_from_slice(map.source());
        if let Some(text) = self.calls.endpoints.blobs.store(place) {
            self.events.maps.push(NamedMap { termination, text, name: name.len() as u8 });
        }
    }

    /// The maps of a termination are gone with it.
    pub(super) fn forget_maps(&mut self, termination: Termination) {
        while let Some(place) = self.events.maps.iter().position(|map| map.termination == termination) {
            let mut old = self.events.maps.swap_remove(place);
            self.calls.endpoints.blobs.free(&mut old.text);
        }
    }

    /// How long the map of an event is; `defined`: by the same command.
    pub(super) fn map_length(
        &self,
        termination: Termination,
        map: &EventDigitMap<'_>,
        defined: Option<&DigitMapDescriptor<'_>>,
    ) -> Result<usize, Failure> {
        match map {
            EventDigitMap::Value(map) => Ok(map.source().len()),
            EventDigitMap::Name(name) => {
                let is_it = |given: &&DigitMapDescriptor<'_>| given.name.is_some_and(|own| own.eq_ignore_ascii_case(name));
                match defined.filter(is_it) {
                    Some(DigitMapDescriptor { map: Some(map), .. }) => Ok(map.source().len()),
                    Some(DigitMapDescriptor { deleted: true, .. }) => Err(MAP_UNKNOWN),
                    _ => self.map_named(termination, name).map(|map| map.text.len()).ok_or(MAP_UNKNOWN),
                }
            }
        }
    }

    /// Lets `use_it` have the map of an event; `None`: there is no such.
    pub(super) fn with_map<T>(
        &self,
        termination: Termination,
        map: &EventDigitMap<'_>,
        use_it: impl FnOnce(&DigitMap<'_>) -> T,
    ) -> Option<T> {
        match map {
            EventDigitMap::Value(map) => Some(use_it(map)),
            EventDigitMap::Name(name) => {
                let mut room: Room = [0; LIST_MAX];
                let known = self.map_named(termination, name)?;
                let whole = text(&self.calls.endpoints.blobs, known.text, &mut room);
                DigitMap::kept(whole.get(usize::from(known.name) + 1..)?).ok().map(|map| use_it(&map))
            }
        }
    }

    /// Writes the maps of a termination; of ROOT: all there are (AV-03). False: there is none.
    pub(super) fn write_maps(&self, w: &mut Writer<'_>, termination: Termination) -> bool {
        let mut any = false;
        let mut room: Room = [0; LIST_MAX];
        let here = |map: &&NamedMap| termination == Termination::Root || map.termination == termination;
        for known in self.events.maps.iter().filter(here) {
            let whole = text(&self.calls.endpoints.blobs, known.text, &mut room);
            let (name, rest) = whole.split_at(usize::from(known.name).min(whole.len()));
            if let Ok(map) = DigitMap::kept(rest.trim_ascii()) {
                w.digit_map(Some(name), Some(&map), false);
                any = true;
            }
        }
        any
    }
}

const MAP_WITHOUT_NAME: Failure = Failure { code: 442, text: "digit map has no name" };
const NO_MAP_LEFT: Failure = Failure { code: 519, text: "no room for the digit map" };
const MAP_UNKNOWN: Failure = Failure { code: 520, text: "no such digit map" };
